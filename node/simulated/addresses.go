package simulated

import (
	"errors"
	"net/netip"
	"sync"
)

var errNoAddress = errors.New("no address is free")

// addresses gives out those of a range, each to one at a time.
type addresses struct {
	in netip.Prefix

	mu    sync.Mutex
	next  netip.Addr
	taken map[netip.Addr]bool
}

func newAddresses(in netip.Prefix) *addresses {
	return &addresses{in: in.Masked(), next: in.Masked().Addr().Next(), taken: map[netip.Addr]bool{}}
}

// take returns a free address: the wanted one, if it is.
func (a *addresses) take(wanted string) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, err := netip.ParseAddr(wanted); err == nil && a.in.Contains(ip) && !a.taken[ip] {
		a.taken[ip] = true
		return ip, nil
	}
	for range len(a.taken) + 2 {
		ip := a.next
		if !a.in.Contains(ip) {
			ip = a.in.Addr().Next()
		}
		a.next = ip.Next()
		if a.in.Contains(ip) && !a.taken[ip] {
			a.taken[ip] = true
			return ip, nil
		}
	}
	return netip.Addr{}, errNoAddress
}

func (a *addresses) give(ip netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, ip)
}
