package turns_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/samplecrd/network-controller/pkg/turns"
)

// TestGate: places are bounded, urgent ones and tenants take turns, and who gives up
// takes no place.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := turns.NewGate(2)
		leaves := make(chan func(), 10)
		var entered []string
		enter := func(ctx context.Context, tenant string, urgent bool, name string) {
			go func() {
				leave, err := gate.Enter(turns.NewContext(ctx, tenant, urgent))
				if err != nil {
					leaves <- nil
					if !errors.Is(err, context.Canceled) {
						t.Errorf("%s: Enter() = %v", name, err)
					}
					return
				}
				entered = append(entered, name)
				leaves <- leave
			}()
			synctest.Wait()
		}
		want := func(names ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(entered, names) {
				t.Fatalf("entered: %v, want %v", entered, names)
			}
		}
		impatient, giveUp := context.WithCancel(t.Context())
		enter(t.Context(), "many", true, "1")
		enter(t.Context(), "many", true, "2")
		enter(t.Context(), "many", false, "background")
		enter(impatient, "many", true, "impatient")
		enter(t.Context(), "many", true, "3")
		enter(t.Context(), "many", true, "4")
		enter(t.Context(), "one", true, "of another tenant")
		want("1", "2")
		giveUp()
		leave := <-leaves
		leave()
		leave() // a second time has no effect
		want("1", "2", "of another tenant")
		for range 4 {
			synctest.Wait()
			if leave := <-leaves; leave != nil {
				leave()
			}
		}
		want("1", "2", "of another tenant", "3", "4", "background")
	})
}

// TestGateGivesUp: a place that is given at the moment at which the context ends is not
// lost.
func TestGateGivesUp(t *testing.T) {
	for range 200 {
		gate := turns.NewGate(1)
		leave, err := gate.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if leave, err := gate.Enter(ctx); err == nil {
				leave()
			}
		}()
		go cancel()
		leave()
		<-ended
		cancel()
		if leave, err = gate.Enter(t.Context()); err != nil { // or waits forever
			t.Fatal(err)
		}
		leave()
	}
}
