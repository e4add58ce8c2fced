package rest

import (
	"net/netip"
	"slices"
	"testing"
)

// The lowest addresses of a range are given out last, so that people can choose
// among them: kubernetes.io/docs/reference/networking/virtual-ips.
func TestAddressesPeopleChooseAreGivenLast(t *testing.T) {
	for cidr, low := range map[string]int{"10.0.0.0/24": 14, "10.0.0.0/28": 0, "10.0.0.0/20": 254, "fd00::/112": 254} {
		p := netip.MustParsePrefix(cidr)
		all := slices.Collect(addresses(p))
		size := 1 << (p.Addr().BitLen() - p.Bits())
		if len(all) != size-3 {
			t.Errorf("%s: %d addresses, want %d", cidr, len(all), size-3)
		}
		band := nth(p, low+2)
		for i, a := range all {
			if low > 0 && a.Less(band) != (i >= len(all)-low) {
				t.Errorf("%s: %s is given as number %d of %d", cidr, a, i, len(all))
				break
			}
		}
		slices.SortFunc(all, netip.Addr.Compare)
		if n := len(slices.Compact(all)); n != size-3 {
			t.Errorf("%s: %d addresses once each, want %d", cidr, n, size-3)
		}
	}
}
