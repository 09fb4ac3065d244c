package reconcile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

var epoch = time.Unix(1_000_000, 0)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// TestAccount has each row of the table above the ledger: what an account claims after
// some events, until when something is pending, and whether it is empty.
func TestAccount(t *testing.T) {
	late := func(a *account) { a.lost("r1", at(30), at(600)) }
	for name, test := range map[string]struct {
		events       []func(*account)
		claims       plan.Claims
		pendingUntil time.Time
		counts       bool // for the limit of a namespace, before the next list
		kept         bool
	}{
		"nothing": {},
		"sent": {
			[]func(*account){func(a *account) { a.sent("r1") }},
			plan.Claims{Requests: []string{"r1"}}, time.Time{}, true, true,
		},
		"executed": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.executed("r1", "net-1", at(1)) }},
			plan.Claims{Requests: []string{"r1"}}, time.Time{}, true, true,
		},
		"rejected": {[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.ended("r1", "") }}, plan.Claims{}, time.Time{}, false, false},
		"no response": {
			[]func(*account){func(a *account) { a.sent("r1") }, late},
			plan.Claims{Requests: []string{"r1"}}, at(30), true, true,
		},
		"no response to what leaves no network": {
			[]func(*account){func(a *account) { a.sent("") }, func(a *account) { a.lost("", at(30), at(600)) }},
			plan.Claims{}, at(30), false, true,
		},
		"two without a response": {
			[]func(*account){func(a *account) { a.sent("r1") }, late, func(a *account) { a.sent("r2") }, func(a *account) { a.lost("r2", at(40), at(610)) }},
			plan.Claims{Requests: []string{"r1", "r2"}}, at(40), true, true,
		},
		"no response, then a response to what leaves no network": {
			[]func(*account){func(a *account) { a.sent("") }, func(a *account) { a.lost("", at(30), at(30)) }, func(a *account) { a.sent("") }, func(a *account) { a.ended("", "") }},
			plan.Claims{}, at(30), false, true,
		},
		"two that leave no network, without a response": {
			[]func(*account){func(a *account) { a.sent("") }, func(a *account) { a.lost("", at(40), at(600)) }, func(a *account) { a.sent("") }, func(a *account) { a.lost("", at(30), at(600)) }},
			plan.Claims{}, at(40), false, true,
		},
		"the status names the network": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.executed("r1", "net-1", at(1)) }, func(a *account) { a.ended("", "net-1") }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"the status names another network": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.executed("r1", "net-1", at(1)) }, func(a *account) { a.ended("r2", "net-2") }},
			plan.Claims{Requests: []string{"r1"}}, time.Time{}, true, true,
		},
		"the status names the network of a request without a response": {
			[]func(*account){func(a *account) { a.sent("r1") }, late, func(a *account) { a.ended("r1", "net-1") }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"a list in which its network may still be missing": {
			[]func(*account){func(a *account) { a.sent("r1") }, late, func(a *account) { a.listed(at(600), nil, false, at(0)) }},
			plan.Claims{Requests: []string{"r1"}}, at(30), true, true,
		},
		"a list without its network": {
			[]func(*account){func(a *account) { a.sent("r1") }, late, func(a *account) { a.listed(at(601), nil, false, at(0)) }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"a list with its network": {
			[]func(*account){func(a *account) { a.sent("r1") }, late, func(a *account) { a.listed(at(601), []string{"r1"}, false, at(0)) }},
			plan.Claims{Requests: []string{"r1"}}, at(30), true, true,
		},
		"a list while it is in flight": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.listed(at(601), nil, false, at(0)) }},
			plan.Claims{Requests: []string{"r1"}}, time.Time{}, true, true,
		},
		"a list without the network that a response had": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.executed("r1", "net-1", at(1)) }, func(a *account) { a.listed(at(2), nil, false, at(0)) }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"a list of before the response": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.executed("r1", "net-1", at(1)) }, func(a *account) { a.listed(at(1), nil, false, at(0)) }},
			plan.Claims{Requests: []string{"r1"}}, time.Time{}, true, true,
		},
		"released": {
			[]func(*account){func(a *account) { a.released = &release{[]string{"r1"}, at(600)} }, func(a *account) { a.listed(at(600), nil, false, at(0)) }},
			plan.Claims{Released: true, Seen: []string{"r1"}}, time.Time{}, false, true,
		},
		"released long ago": {
			[]func(*account){func(a *account) { a.released = &release{[]string{"r1"}, at(600)} }, func(a *account) { a.listed(at(601), []string{"r1"}, false, at(0)) }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"released long ago, and a late network": {
			[]func(*account){func(a *account) { a.released = &release{[]string{"r1"}, at(600)} }, func(a *account) { a.listed(at(601), []string{"r1", "r2"}, false, at(0)) }},
			plan.Claims{Released: true, Seen: []string{"r1"}}, time.Time{}, false, true,
		},
		"an orphan": {[]func(*account){func(a *account) { a.isOrphan = true }}, plan.Claims{Orphans: true}, time.Time{}, false, true},
		"a former leader": {
			[]func(*account){func(a *account) { a.former = &former{} }, func(a *account) { a.listed(at(30), nil, false, at(30)) }},
			plan.Claims{}, time.Time{}, false, true,
		},
		"a former leader, long ago": {
			[]func(*account){func(a *account) { a.former = &former{} }, func(a *account) { a.listed(at(31), nil, false, at(30)) }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"an adopted network, within its time": {
			[]func(*account){func(a *account) { a.adopted = adopted{"net-1", at(600)} }, func(a *account) { a.listed(at(600), nil, false, at(0)) }},
			plan.Claims{}, time.Time{}, false, true,
		},
		"an adopted network, long ago": {
			[]func(*account){func(a *account) { a.adopted = adopted{"net-1", at(600)} }, func(a *account) { a.listed(at(601), nil, false, at(0)) }},
			plan.Claims{}, time.Time{}, false, false,
		},
		"an adopted network, long ago, and a late subnet": {
			[]func(*account){func(a *account) { a.adopted = adopted{"net-1", at(600)} }, func(a *account) { a.listed(at(601), nil, true, at(0)) }},
			plan.Claims{}, time.Time{}, false, true,
		},
		"a router, and the network is gone": {
			[]func(*account){func(a *account) { a.sent("r1") }, func(a *account) { a.router = "router-1" }, func(a *account) { a.ended("r1", "") }},
			plan.Claims{}, time.Time{}, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a account
			for _, event := range test.events {
				event(&a)
			}
			if diff := cmp.Diff(test.claims, a.claims(true)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if got := a.pendingUntil(); got != test.pendingUntil {
				t.Errorf("pending until %v, want %v", got, test.pendingUntil)
			}
			if got := a.counts(func(since time.Time) bool { return since.Before(at(1)) }); got != test.counts {
				t.Errorf("counts() = %v, want %v", got, test.counts)
			}
			if a.isEmpty() == test.kept {
				t.Errorf("isEmpty() = %v: %+v", !test.kept, a)
			}
		})
	}
}

// TestFormerUntil: a request of a former leader may be pending after this replica has
// started leading, unless the object had been Ready for long with the network that it has.
func TestFormerUntil(t *testing.T) {
	const quiet, started = 60 * time.Second, 100
	ready := former{uid: "1", networkID: "net-1", readySince: at(started - 61)}
	found := formerStatus{uid: "1", networkID: "net-1", found: true}
	pending := at(started + 30)
	for name, test := range map[string]struct {
		former *former
		status formerStatus
		want   time.Time
	}{
		"no object of a former leader": {nil, found, time.Time{}},
		"another object":               {&ready, formerStatus{uid: "2", networkID: "net-1", found: true}, time.Time{}},
		"ready for long":               {&ready, found, time.Time{}},
		"ready for a short time":       {&former{uid: "1", networkID: "net-1", readySince: at(started - 60)}, found, pending},
		"not ready":                    {&former{uid: "1", networkID: "net-1"}, found, pending},
		"another network":              {&ready, formerStatus{uid: "1", networkID: "net-2", found: true}, pending},
		"no network":                   {&ready, formerStatus{uid: "1", networkID: "net-1"}, pending},
	} {
		a := account{former: test.former}
		if got := a.formerUntil(test.status, at(started), 30*time.Second, quiet); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestOrphanWithObject: what is an orphan's does not count while there is an object.
func TestOrphanWithObject(t *testing.T) {
	a := account{isOrphan: true}
	if diff := cmp.Diff(plan.Claims{}, a.claims(false)); diff != "" {
		t.Errorf("claims with an object (-want +got):\n%s", diff)
	}
}

// FuzzAccount plays random events of one key against a model of Neutron. Whatever Neutron
// has of a request that the account noted, and that no status names, the account claims;
// it claims nothing that a status has named; and it is empty in the end.
func FuzzAccount(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		const inFlight, lateness = 30 * time.Second, 600 * time.Second
		var a account
		now := epoch
		appearsAt := map[string]time.Time{} // when Neutron executes a request
		named := map[string]bool{}
		exists := func(id string) bool { at, ok := appearsAt[id]; return ok && !at.After(now) }
		inList := func() (ids []string) {
			for id := range appearsAt {
				if exists(id) {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
			return ids
		}
		for i := range 40 {
			now = now.Add(time.Duration(random.IntN(90)) * time.Second)
			id := fmt.Sprint("r", i)
			switch random.IntN(7) {
			case 0: // a response
				a.sent(id)
				appearsAt[id] = now
				a.executed(id, "net-"+id, now)
			case 1: // a response that is lost, and a request that is late or lost, too
				a.sent(id)
				if random.IntN(2) == 0 {
					appearsAt[id] = now.Add(time.Duration(random.Int64N(int64(lateness))))
				}
				a.lost(id, now.Add(inFlight), now.Add(lateness))
			case 2: // rejected
				a.sent(id)
				a.ended(id, "")
			case 3: // the status names a network
				if ids := inList(); len(ids) > 0 {
					id = ids[random.IntN(len(ids))]
					named[id] = true
					a.ended(id, "net-"+id)
				}
			case 4: // a network that is claimed is deleted
				for _, id := range inList() {
					if a.claimsRequest(id) {
						delete(appearsAt, id)
						a.ended(id, "net-"+id)
						break
					}
				}
			case 5:
				a.listed(now, inList(), false, epoch)
			case 6: // somebody deletes a network
				if ids := inList(); len(ids) > 0 {
					delete(appearsAt, ids[random.IntN(len(ids))])
				}
			}
			for _, id := range inList() {
				if claimed := a.claimsRequest(id); claimed == named[id] {
					t.Fatalf("after %d events, %s is claimed: %v, named: %v\n%+v", i+1, id, claimed, named[id], a)
				}
			}
		}
		for _, id := range inList() {
			if a.claimsRequest(id) {
				delete(appearsAt, id)
			}
		}
		now = now.Add(lateness + time.Second)
		for id := range appearsAt {
			if !named[id] && exists(id) && !a.claimsRequest(id) {
				t.Errorf("%s appeared late, and is not claimed", id)
			}
			delete(appearsAt, id)
		}
		if a.listed(now, nil, false, epoch); !a.isEmpty() {
			t.Errorf("at the end, the account is %+v", a)
		}
	})
}

// claimsRequest reports whether the account claims the network of a request.
func (a *account) claimsRequest(id string) bool {
	return a.claims(true).Has(neutron.Owner{Cluster: "c", Namespace: "n", Name: "x"}.NetworkMarker(id, false))
}
