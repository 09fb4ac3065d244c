// Package glass shows the path of a key through any controller: from the watch to the
// informer's cache, the event handlers, the work queue, the workers, and the requests to
// Kubernetes and to other servers. A page in a browser, a command in a terminal (RunFollow)
// and JSON show the same data.
//
// A program wraps its transports, informers and queues, and serves the page: see the examples.
// A key may be of any type that is comparable, and is shown as fmt.Sprint prints it. A program
// may have several controllers.
//
// # Cost
//
// The zero Page wraps nothing, and so costs nothing. A Page costs some 10 µs of CPU time for each
// sync, whether somebody watches or not.
//
// # Bounds
//
// For each controller, a Page keeps the last 200 journeys, 20 of them for one key, and at most
// 20,000 keys that wait. Texts are cut at 400 bytes. That is at most about 5 MiB for journeys.
// It serves at most 8 streams at a time. Under load, a stream has only some of the keys.
//
// # Secrets
//
// A Page keeps keys, resource versions, the part of an object that has changed (such as spec),
// operations and status codes of requests, and the texts that the program passes: errors, what
// a stage has found, and steps. It never keeps an object, a header, a query, or the body of a
// request or response. It has no authentication: serve it to this machine only, as Serve does.
package glass

import (
	"time"

	"github.com/samplecrd/network-controller/pkg/observe"
)

// State is what one controller of the process does now. The path /api/state returns it as
// JSON, with ?controller=name for another one than the first. All counts begin with the
// process.
type State struct {
	Time        time.Time `json:"time"`
	Process     Process   `json:"process"`
	Controllers []string  `json:"controllers"` // the names of all
	Controller  string    `json:"controller"`  // the name of this one
	Stages      []Stage   `json:"stages"`      // of a sync
	// Informers are those of the objects of the keys: several, if each has a namespace.
	Informers []Informer `json:"informers"`
	// Handlers counts the calls of the event handlers that were "added", "updated" and
	// "deleted", and those that added no key, "skipped".
	Handlers map[string]int `json:"handlers"`
	Queue    QueueState     `json:"queue"`
	Workers  []Worker       `json:"workers"`
	// Servers are those beside Kubernetes.
	Servers []ServerState `json:"servers"`
}

// Process is this process and its role.
type Process struct {
	Name    string    `json:"name"` // of the program
	Version string    `json:"version"`
	Started time.Time `json:"started"`          // New sets it
	Leads   bool      `json:"leads"`            // whether this replica reconciles
	Holder  string    `json:"holder,omitempty"` // of the Lease, as far as known
}

// Informer is the state of one informer.
type Informer struct {
	// Activity is "listing", "watching" or "waiting" after an error.
	Activity        string `json:"activity"`
	ResourceVersion string `json:"resourceVersion"` // received last
	LastError       string `json:"lastError,omitempty"`
	Objects         int    `json:"objects"` // in the indexer
}

// QueueState is the state of the work queue.
type QueueState struct {
	// Depth is the number of keys that wait for a worker. Front are about the next ones.
	Depth int      `json:"depth"`
	Front []string `json:"front"`
	// Merged counts the adds of keys that were in the queue already.
	Merged int `json:"merged"`
	// Waiting are the keys that are added after a delay, the next ones first: at most
	// 20 of WaitingCount.
	Waiting      []Waiting `json:"waiting"`
	WaitingCount int       `json:"waitingCount"`
}

// Waiting is a key that is added to the queue later.
type Waiting struct {
	Key string `json:"key"`
	// Failures is the number of failures in a row because of which the key waits. It is 0
	// after a failure that needs longer than a backoff.
	Failures int       `json:"failures,omitempty"`
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
}

// Worker is one of the workers, which are numbered from 1.
type Worker struct {
	Number int    `json:"number"`
	Key    string `json:"key,omitempty"` // empty while the worker waits for one
	Stage  Stage  `json:"stage,omitempty"`
	Step   string `json:"step,omitempty"` // that is being applied
}

// ServerState is the use of a server.
type ServerState struct {
	Name     string `json:"name"`
	Instance string `json:"instance,omitempty"` // which one it is
	InFlight int    `json:"inFlight"`
	Limit    int    `json:"limit,omitempty"` // the largest number of requests at a time
	Requests int    `json:"requests"`        // that have ended
	Cache    *Cache `json:"cache,omitempty"` // nil without one
}

// Cache is a controller's cache of the state of a server.
type Cache struct {
	Objects int `json:"objects"`
	// Text names them, such as "networks, 3 subnets".
	Text string `json:"text"`
	// Refreshed is when its last complete list began, or nil before the first one.
	Refreshed *time.Time `json:"refreshed,omitempty"`
}

// Stage is a station on the path of a key.
type Stage = observe.Stage

// The stages of each key, in the order of the path. Between StageWorker and StageDone are
// those of Config, and StageSync if there are none.
const (
	StageWatch      Stage = "watch"      // the API server sent an event, or a list
	StageFIFO       Stage = "fifo"       // the change waits in the informer's FIFO
	StageIndexer    Stage = "indexer"    // the informer's cache has the object
	StageHandler    Stage = "handler"    // an event handler was called
	StageSkipped    Stage = "skipped"    // the handler found nothing to do
	StageQueue      Stage = "queue"      // the key was added to the queue
	StageMerged     Stage = "merged"     // the key was in the queue already
	StageWorker     Stage = "worker"     // a worker took the key
	StageSync       Stage = "sync"       // the sync runs
	StageKubernetes Stage = "kubernetes" // a request to Kubernetes has ended
	StageServer     Stage = "server"     // a request to another server has ended
	StageDone       Stage = "done"       // the sync succeeded, and the failures are forgotten
	StageBackoff    Stage = "backoff"    // the sync failed, and the key waits
)

// The stages of a sync for which the page has words. StagePlan and StageApply are reached
// with each step that begins (observe.BeginStep), the others by observe.Reach. A step that
// fails reaches StageApply again, with its error.
const (
	StageDesired = observe.Desired // the desired state is derived
	StageActual  = observe.Actual  // the actual state is observed
	StagePlan    = Stage("plan")   // the next step is known
	StageApply   = Stage("apply")  // a step is being applied
	StageReport  = observe.Report  // status and events are written
)

// Moment is the arrival of a key at a stage. The page moves a dot for it.
type Moment struct {
	Time  time.Time `json:"time"`
	Stage Stage     `json:"stage"`
	Key   string    `json:"key"`
	// Text says more: the cause of an add, what a stage has found, a step, a request with
	// its status code, the outcome, or an error.
	Text   string `json:"text,omitempty"`
	Worker int    `json:"worker,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Milliseconds is how long a request took until it ended now, or a step that began now.
	Milliseconds float64 `json:"milliseconds,omitempty"`
}

// Journey is the path of one key from the events that caused a sync to the outcome of
// that sync. The path /api/journeys?key=namespace/name returns those that are kept as
// a JSON array, the newest first. Without a key, it returns those of all.
type Journey struct {
	ID   string `json:"id"` // of the sync, as in the log, or "pending" before it
	Key  string `json:"key"`
	Adds int    `json:"adds"` // that this one sync handles
	// Moments begin with the causes of the first adds. If there are too many, the last ones
	// are missing.
	Moments []*Moment  `json:"moments"`
	Ended   *time.Time `json:"ended,omitempty"` // nil while the key waits, or the sync runs
	// Outcome is the outcome in words, such as "Ready" or the error.
	Outcome string `json:"outcome,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	// Retry is when the key is added again because of a failure, if it is.
	Retry *Waiting `json:"retry,omitempty"`
}

// The stream /api/stream sends server-sent events: "state" with a State, at most four
// a second; "moments" with a JSON array of Moments, at most ten a second; and, with
// ?key=namespace/name, "journeys" with the journeys of this key when they change. Under
// load, it sends only some of the Moments.
//
// /api/keys?prefix=text returns a JSON array of at most 20 keys that begin with the
// text. All paths accept &controller=name.
