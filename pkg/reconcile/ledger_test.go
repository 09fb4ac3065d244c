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

// event is something that happens to an account.
type event = func(*account)

func sent(id string) event  { return func(a *account) { a.sent(id) } }
func ended(id string) event { return func(a *account) { a.ended(id, "net-of-"+id) } }

// executed is the response to the request r1.
func executed(a *account) { a.executed("r1", "net-of-r1", at(1)) }

// lost is a request that may be pending for so long, and whose network may appear until at(600).
func lost(id string, pending int) event {
	return func(a *account) { a.lost(id, at(pending), at(600)) }
}

// listed is a list that began at a time. It has the networks of some requests.
func listed(second int, ids ...string) event {
	return func(a *account) { a.listed(at(second), ids, nil, at(30)) }
}

// TestAccount has each row of the table above the ledger: what an account claims after
// some events, until when something is pending, and whether it is empty.
func TestAccount(t *testing.T) {
	r1, r2 := plan.Claims{Requests: []string{"r1"}}, plan.Claims{Requests: []string{"r1", "r2"}}
	seen := plan.Claims{Released: true, Seen: []string{"r1"}}
	released := func(a *account) { a.released = &release{seen: []string{"r1"}, endsAt: at(600)} }
	onAdopted := func(a *account) { a.mayHaveSubnet(adopted{"net-1", at(600)}) }
	hasFormer := func(a *account) { a.former = &former{} }
	hasSubnet := func(a *account) { a.listed(at(601), nil, []string{"net-1"}, at(30)) }
	rejected := func(a *account) { a.ended("r1", "") }
	none, never := plan.Claims{}, time.Time{}
	for name, test := range map[string]struct {
		events       []event
		claims       plan.Claims
		pendingUntil time.Time
		counts       bool // for the limit of a namespace, before the next list
		kept         bool
	}{
		"nothing":                        {nil, none, never, false, false},
		"sent":                           {[]event{sent("r1")}, r1, never, true, true},
		"executed":                       {[]event{sent("r1"), executed}, r1, never, true, true},
		"rejected":                       {[]event{sent("r1"), rejected}, none, never, false, false},
		"no response":                    {[]event{sent("r1"), lost("r1", 30)}, r1, at(30), true, true},
		"no response, leaves no network": {[]event{sent(""), lost("", 30)}, none, at(30), false, true},
		"two without a response":         {[]event{sent("r1"), lost("r1", 30), sent("r2"), lost("r2", 40)}, r2, at(40), true, true},
		"two that leave no network":      {[]event{sent(""), lost("", 40), sent(""), lost("", 30)}, none, at(40), false, true},
		"the same, one has a response":   {[]event{sent(""), lost("", 30), sent(""), ended("")}, none, at(30), false, true},

		"the status names the network":           {[]event{sent("r1"), executed, ended("r1")}, none, never, false, false},
		"the status names another network":       {[]event{sent("r1"), executed, ended("r2")}, r1, never, true, true},
		"the status names it, without response":  {[]event{sent("r1"), lost("r1", 30), ended("r1")}, none, never, false, false},
		"a list of before its end":               {[]event{sent("r1"), lost("r1", 30), listed(600)}, r1, at(30), true, true},
		"a list without its network":             {[]event{sent("r1"), lost("r1", 30), listed(601)}, none, never, false, false},
		"a list with its network":                {[]event{sent("r1"), lost("r1", 30), listed(601, "r1")}, r1, at(30), true, true},
		"a list while it is in flight":           {[]event{sent("r1"), listed(601)}, r1, never, true, true},
		"a list of before the response":          {[]event{sent("r1"), executed, listed(1)}, r1, never, true, true},
		"a list without what was created before": {[]event{sent("r1"), executed, listed(2)}, none, never, false, false},

		"released":                         {[]event{released, listed(600)}, seen, never, false, true},
		"released long ago":                {[]event{released, listed(601, "r1")}, none, never, false, false},
		"released long ago, late network":  {[]event{released, listed(601, "r1", "r2")}, seen, never, false, true},
		"an orphan":                        {[]event{func(a *account) { a.isOrphan = true }}, plan.Claims{Orphans: true}, never, false, true},
		"a former leader":                  {[]event{hasFormer, listed(30)}, none, never, false, true},
		"a former leader, long ago":        {[]event{hasFormer, listed(31)}, none, never, false, false},
		"an adopted network":               {[]event{onAdopted, listed(600)}, none, never, false, true},
		"an adopted network, long ago":     {[]event{onAdopted, listed(601)}, none, never, false, false},
		"an adopted network, late subnet":  {[]event{onAdopted, hasSubnet}, none, never, false, true},
		"a router, and no network is left": {[]event{sent("r1"), func(a *account) { a.router = "router-1" }, ended("r1")}, none, never, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var a account
			for _, happens := range test.events {
				happens(&a)
			}
			if diff := cmp.Diff(test.claims, a.claims(true)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			if a.claims(false).Orphans {
				t.Error("what is an orphan's counts while there is an object")
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
			if a.hasUnnamed() && a.isEmpty() {
				t.Error("an empty account may have something that no status names")
			}
		})
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
				a.listed(now, inList(), nil, epoch)
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
		if a.listed(now, nil, nil, epoch); !a.isEmpty() {
			t.Errorf("at the end, the account is %+v", a)
		}
	})
}

// claimsRequest reports whether the account claims the network of a request.
func (a *account) claimsRequest(id string) bool {
	return a.claims(true).Has(neutron.Owner{Cluster: "c", Namespace: "n", Name: "x"}.NetworkMarker(id, false))
}
