package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// ServiceRange says which addresses and ports services get.
type ServiceRange struct {
	// CIDR holds the cluster addresses; the zero value is 10.0.0.0/24.
	CIDR netip.Prefix
	// FirstPort and LastPort bound node ports; zero is 30000 to 32767.
	FirstPort, LastPort int32
}

func (r ServiceRange) withDefaults() ServiceRange {
	if !r.CIDR.IsValid() {
		r.CIDR = netip.MustParsePrefix("10.0.0.0/24")
	}
	if r.FirstPort == 0 && r.LastPort == 0 {
		r.FirstPort, r.LastPort = 30000, 32767
	}
	return r
}

func (r ServiceRange) family() corev1.IPFamily {
	if r.CIDR.Addr().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// A claim on an address is an IPAddress, as in the real server; one on a node
// port is an object that is not served. Both are created only if they do not
// exist, so that servers which share a store cannot give one out twice.
const (
	ipClaims   = "ipaddresses.networking.k8s.io"
	portClaims = "nodeports.evenkeel.internal"
)

const (
	labelManagedBy = "ipaddress.kubernetes.io/managed-by"
	labelIPFamily  = "ipaddress.kubernetes.io/ip-family"
	ipAllocator    = "ipallocator.k8s.io"
)

// allocate gives a service the addresses and ports it needs. Call release if it
// is not stored after all. Other kinds need nothing.
func (c *call) allocate(obj, old runtime.Object, dryRun bool) (release func(), err error) {
	svc, ok := obj.(*corev1.Service)
	if !ok {
		return func() {}, nil
	}
	var was *corev1.Service
	if old != nil {
		was = old.(*corev1.Service)
	}
	p := &servicePool{call: c, svc: svc, dryRun: dryRun}
	claims, err := kinds.AllocateService(svc, was, kinds.ServicePool{Family: c.api.services.family(), IP: p.takeIP, Port: p.takePort})
	release = func() {
		if !dryRun {
			c.api.giveBack(claims)
		}
	}
	if err != nil {
		release()
		return nil, cmp.Or(p.lost, err)
	}
	return release, nil
}

// free gives back what a service no longer needs; obj is nil if it is gone. Then
// its endpoints go too.
func (a *API) free(obj, old runtime.Object) {
	was, ok := old.(*corev1.Service)
	if !ok {
		return
	}
	now, _ := obj.(*corev1.Service)
	a.giveBack(kinds.ReleaseService(was, now))
	if now == nil {
		a.drop(context.Background(), "endpoints", was.Namespace, was.Name)
	}
}

// giveBack drops claims. One that cannot be dropped is found at the next start.
func (a *API) giveBack(claims kinds.ServiceClaims) {
	ctx := context.Background()
	for _, ip := range claims.IPs {
		a.drop(ctx, ipClaims, "", ip)
	}
	for _, port := range claims.Ports {
		a.drop(ctx, portClaims, "", strconv.Itoa(int(port)))
	}
}

// drop removes what a service had, if it is there.
func (a *API) drop(ctx context.Context, storageName, namespace, name string) {
	o := a.hub.Resource(storageName).Get(namespace, name)
	if o == nil {
		return
	}
	if _, err := a.store.Commit(ctx, storage.Delete(watch.Key(storageName, namespace, name), o.Revision)); err != nil {
		a.log.Warn("what a service had was not removed", "object", storageName+"/"+name, "error", err)
	}
}

// servicePool claims addresses and ports for one service.
type servicePool struct {
	*call
	svc    *corev1.Service
	dryRun bool
	// lost says that the request's fence is.
	lost error
}

func (p *servicePool) takeIP(want string) (string, error) {
	claimed := p.api.hub.Resource(ipClaims)
	if want != "" {
		addr, err := netip.ParseAddr(want)
		if err != nil || !p.api.services.CIDR.Contains(addr) {
			return "", kinds.ErrServiceIPOutside(want, p.api.services.CIDR.String())
		}
		if o, err := p.api.newest(p.ctx(), claimed, "", addr.String()); err != nil || o != nil {
			return "", cmp.Or(err, kinds.ErrServiceIPTaken)
		}
		return want, p.claimIP(addr)
	}
	for addr := range addresses(p.api.services.CIDR) {
		if claimed.Get("", addr.String()) != nil {
			continue
		}
		err := p.claimIP(addr)
		if !errors.Is(err, kinds.ErrServiceIPTaken) {
			return addr.String(), err
		}
	}
	return "", kinds.ErrServiceRangeFull
}

// addresses yields the addresses of a range, those that people choose last,
// without the network's own, the first, which is the API server's, and the
// broadcast's.
func addresses(cidr netip.Prefix) func(func(netip.Addr) bool) {
	return func(yield func(netip.Addr) bool) {
		size := min(1<<(cidr.Addr().BitLen()-cidr.Bits()), 1<<16)
		for n := range chosenLast(size, min(max(16, size/16), 256)) {
			if n >= 2 && n < size-1 && !yield(nth(cidr, n)) {
				return
			}
		}
	}
}

// chosenLast yields the numbers below size: from a random one on those from
// band up, then those below it, which are left to people who choose themselves.
func chosenLast(size, band int) func(func(int) bool) {
	if size <= band {
		band = 0
	}
	return func(yield func(int) bool) {
		for _, part := range [][2]int{{band, size}, {0, band}} {
			n := part[1] - part[0]
			if n == 0 {
				continue
			}
			start := rand.IntN(n)
			for i := range n {
				if !yield(part[0] + (start+i)%n) {
					return
				}
			}
		}
	}
}

func nth(cidr netip.Prefix, n int) netip.Addr {
	raw := cidr.Masked().Addr().AsSlice()
	for i := len(raw) - 1; n > 0; i-- {
		n += int(raw[i])
		raw[i] = byte(n)
		n >>= 8
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr
}

func (p *servicePool) claimIP(addr netip.Addr) error {
	r := p.api.registry.stored("networking.k8s.io", "ipaddresses")
	if r == nil {
		return errors.New("IPAddress is not served")
	}
	if p.dryRun {
		return nil
	}
	claim := &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Name: addr.String(), UID: uuid.NewUUID(), CreationTimestamp: metav1.NewTime(p.api.now()), Generation: 1,
			Labels: map[string]string{labelManagedBy: ipAllocator, labelIPFamily: string(p.api.services.family())},
		},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: "services", Namespace: p.svc.Namespace, Name: p.svc.Name,
		}},
	}
	claim.SetGroupVersionKind(r.gvk)
	_, err := p.api.commit(p.ctx(), r, claim, 0)
	return p.outcome(err, kinds.ErrServiceIPTaken)
}

// outcome is what became of a claim: taken if somebody else has it.
func (p *servicePool) outcome(err, taken error) error {
	if apierrors.HasStatusCause(err, causeFenceLost) {
		p.lost = err
	}
	if errors.Is(err, storage.ErrConflict) {
		return taken
	}
	return err
}

func (p *servicePool) takePort(want int32) (int32, error) {
	first, last := p.api.services.FirstPort, p.api.services.LastPort
	claimed := p.api.hub.Resource(portClaims)
	if want != 0 {
		if want < first || want > last {
			return 0, kinds.ErrServicePortOutside(fmt.Sprintf("%d-%d", first, last))
		}
		if o, err := p.api.newest(p.ctx(), claimed, "", strconv.Itoa(int(want))); err != nil || o != nil {
			return 0, cmp.Or(err, kinds.ErrServicePortTaken)
		}
		return want, p.claimPort(want)
	}
	size := int(last - first + 1)
	for n := range chosenLast(size, min(max(16, size/32), 128)) {
		port := first + int32(n)
		if claimed.Get("", strconv.Itoa(int(port))) != nil {
			continue
		}
		err := p.claimPort(port)
		if !errors.Is(err, kinds.ErrServicePortTaken) {
			return port, err
		}
	}
	return 0, kinds.ErrServiceRangeFull
}

func (p *servicePool) claimPort(port int32) error {
	name := strconv.Itoa(int(port))
	if p.dryRun {
		return nil
	}
	value, err := watch.Stored(fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":%q,"creationTimestamp":%q},"service":%q}`,
		name, watch.Placeholder, p.api.now().UTC().Format(time.RFC3339), p.svc.Namespace+"/"+p.svc.Name))
	if err != nil {
		return err
	}
	result, err := p.api.write(p.ctx(), storage.Create(watch.Key(portClaims, "", name), value))
	if err != nil {
		return p.outcome(err, kinds.ErrServicePortTaken)
	}
	return p.api.hub.Wait(p.ctx(), result.Revision)
}

// claimAge is how old a claim without a service must be to be taken for one of
// a server that has ended: others may be about to store theirs.
const claimAge = 5 * time.Minute

// RepairServices drops old claims that no service holds: those of a server that
// ended between a claim and its service. Others may write meanwhile.
func (a *API) RepairServices(ctx context.Context) error {
	claims := a.claimsBefore(a.now().Add(-claimAge)) // before services, which are stored after their claims
	held, err := a.heldClaims()
	if err != nil {
		return err
	}
	for key, o := range claims {
		if held[o.Name] {
			continue
		}
		if _, err := a.store.Commit(ctx, storage.Delete(key, o.Revision)); err != nil && !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("drop the claim %s: %w", key, err)
		}
	}
	return nil
}

// heldClaims returns the names of the claims that services hold.
func (a *API) heldClaims() (map[string]bool, error) {
	held := map[string]bool{}
	services := a.registry.stored("", "services")
	var failed error
	services.objects.Snapshot().Scan("", "", func(o *watch.Object) bool {
		obj, err := services.decoded(o)
		if err != nil {
			failed = err
			return false
		}
		h := kinds.HeldByService(obj.(*corev1.Service))
		for _, ip := range h.IPs {
			held[ip] = true
		}
		for _, port := range h.Ports {
			held[strconv.Itoa(int(port))] = true
		}
		return true
	})
	return held, failed
}

// claimsBefore returns the allocator's claims that were made before a time.
func (a *API) claimsBefore(t time.Time) map[storage.Key]*watch.Object {
	found := map[storage.Key]*watch.Object{}
	for _, name := range []string{ipClaims, portClaims} {
		a.hub.Resource(name).Snapshot().Scan("", "", func(o *watch.Object) bool {
			var claim metav1.PartialObjectMetadata
			err := json.Unmarshal(o.AppendJSON(nil), &claim)
			ours := name == portClaims || claim.Labels[labelManagedBy] == ipAllocator
			if err == nil && ours && claim.CreationTimestamp.Time.Before(t) {
				found[watch.Key(name, "", o.Name)] = o
			}
			return true
		})
	}
	return found
}
