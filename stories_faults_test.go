package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// faultPhrases are what can go wrong between the controllers and Neutron. WHAT
// is everything, or a method and a kind of object, such as POST networks; once,
// twice or NUMBER times can follow.
var faultPhrases = map[string]phrase{
	"neutron answers":        {"STATUS [HEADER=VALUE] to WHAT…", (*story).neutronAnswers},
	"neutron loses-requests": {"WHAT…", faultOf(faults.Fault{DropRequest: true})},
	"neutron loses-answers":  {"to WHAT…", faultOf(faults.Fault{DropAnswer: true})},
	"neutron halves-answers": {"to WHAT…", faultOf(faults.Fault{Truncate: true})},
	"neutron works":          {"DURATION on WHAT…", (*story).neutronWorks},
	"neutron heals":          {"", (*story).neutronHeals},
	"neutron receives":       {"METHOD KIND", (*story).neutronReceives},
	"neutron finishes":       {"", (*story).neutronFinishes},
}

// inject makes a fault happen to what the end of a phrase chooses.
func (s *story) inject(fault faults.Fault, what []string) error {
	if len(what) > 0 && slices.Contains([]string{"to", "on"}, what[0]) {
		what = what[1:]
	}
	if len(what) == 1 && what[0] == "everything" {
		s.neutron.heal = append(s.neutron.heal, s.neutron.Inject(fault))
		return nil
	}
	if len(what) < 2 {
		return fmt.Errorf("%q chooses no requests: say everything, or METHOD KIND", strings.Join(what, " "))
	}
	fault.Method, fault.Path = what[0], "^/v2.0/"+what[1]
	switch often := strings.Join(what[2:], " "); often {
	case "":
	case "once":
		fault.Times = 1
	case "twice":
		fault.Times = 2
	default:
		if _, err := fmt.Sscanf(often, "%d times", &fault.Times); err != nil {
			return fmt.Errorf("how often is %q? Say once, twice or NUMBER times", often)
		}
	}
	s.neutron.heal = append(s.neutron.heal, s.neutron.Inject(fault))
	return nil
}

func faultOf(fault faults.Fault) func(*story, io.Writer, []string) error {
	return func(s *story, _ io.Writer, what []string) error { return s.inject(fault, what) }
}

// neutronAnswers has requests answered with a status, and a header if one is
// given as in Retry-After=2, and not carried out.
func (s *story) neutronAnswers(_ io.Writer, args []string) error {
	status, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fault, what := faults.Fault{Status: status}, args[1:]
	if key, value, ok := strings.Cut(what[0], "="); ok {
		fault.Header, what = http.Header{key: {value}}, what[1:]
	}
	return s.inject(fault, what)
}

// neutronWorks has Neutron take its time. It finishes what it has begun, also
// when nobody waits for the answer.
func (s *story) neutronWorks(_ io.Writer, args []string) error {
	duration, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	return s.inject(faults.Fault{Work: duration}, args[1:])
}

func (s *story) neutronHeals(io.Writer, []string) error {
	s.neutron.healAll()
	return nil
}

// neutronReceives waits for a request to come, which need not be answered yet.
func (s *story) neutronReceives(_ io.Writer, args []string) error {
	return s.eventually(func() error {
		for _, r := range slices.Concat(s.neutron.Requests(), s.neutron.UnderWay()) {
			if r.Method == args[0] && strings.HasPrefix(r.Path, "/v2.0/"+args[1]) {
				return nil
			}
		}
		return errors.New("no such request has come")
	})
}

// neutronFinishes waits until no request is under way.
func (s *story) neutronFinishes(io.Writer, []string) error {
	return s.eventually(func() error {
		if left := s.neutron.UnderWay(); len(left) > 0 {
			return fmt.Errorf("there are still %+v", left)
		}
		return nil
	})
}

// dateBack has Neutron say that a network was made so much earlier.
func (s *story) dateBack(_ io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	age, err := time.ParseDuration(args[1])
	s.neutron.birthdays.set(network.ID, time.Now().Add(-age))
	return err
}

// birthdays are when networks were made, for those of which Neutron is not to
// tell the truth. There is no other way to have an old one at hand.
type birthdays struct {
	mu  sync.Mutex
	all map[string]string // by ID
}

func (b *birthdays) set(id string, birthday time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]string{}
	}
	b.all[id] = birthday.UTC().Format(time.RFC3339)
}

// before returns a handler that changes answers of the next one.
func (b *birthdays) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		body := recorder.Body.Bytes()
		var answer map[string]json.RawMessage
		var networks []map[string]any
		if json.Unmarshal(body, &answer) == nil && json.Unmarshal(answer["networks"], &networks) == nil {
			b.mu.Lock()
			for _, network := range networks {
				if birthday, ok := b.all[network["id"].(string)]; ok {
					network["created_at"] = birthday
				}
			}
			b.mu.Unlock()
			answer["networks"], _ = json.Marshal(networks)
			body, _ = json.Marshal(answer)
		}
		recorder.Header().Del("Content-Length")
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(body)
	})
}
