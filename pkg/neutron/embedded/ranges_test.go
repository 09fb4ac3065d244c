package embedded

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// TestRanges compares with what counting addresses one by one gives, at the end
// of all there are.
func TestRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() (prefixes []netip.Prefix) {
		for range random.IntN(5) {
			address := netip.AddrFrom4([4]byte{255, 255, 255, byte(192 + random.IntN(64))})
			prefix, _ := address.Prefix(26 + random.IntN(7))
			prefixes = append(prefixes, prefix)
		}
		return prefixes
	}
	for range 2000 {
		all, taken := some(), some()
		left := prefixesOf(without(rangesOf(all), rangesOf(taken)))
		for last := range 256 {
			address := netip.AddrFrom4([4]byte{255, 255, 255, byte(last)})
			has := func(prefixes []netip.Prefix) bool {
				return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
			}
			if has(left) != (has(all) && !has(taken)) {
				t.Fatalf("%v without %v is %v: wrong about %v", all, taken, left, address)
			}
		}
		for i := 1; i < len(left); i++ {
			parent, _ := left[i].Addr().Prefix(left[i].Bits() - 1)
			if lastAddr(left[i-1]).Compare(left[i].Addr()) >= 0 || left[i-1].Bits() == left[i].Bits() && parent.Contains(left[i-1].Addr()) {
				t.Fatalf("%v without %v is %v: %v is out of order, or one with the one before", all, taken, left, left[i])
			}
		}
	}
}

func TestRangesOfEverything(t *testing.T) {
	for _, text := range []string{"0.0.0.0/0", "::/0"} {
		prefix := netip.MustParsePrefix(text)
		if got := prefixesOf(rangesOf([]netip.Prefix{prefix, prefix})); len(got) != 1 || got[0] != prefix {
			t.Errorf("%v became %v", prefix, got)
		}
		if got := without(rangesOf([]netip.Prefix{prefix}), rangesOf([]netip.Prefix{prefix})); len(got) != 0 {
			t.Errorf("%v without itself is %v", prefix, got)
		}
	}
}
