package node

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

// leaseNamespace is where the leases of nodes are.
const leaseNamespace = "kube-node-lease"

// nodes registers the nodes of an agent, and keeps them alive: one queue, in which
// each node comes again when its lease is to be renewed.
type nodes struct {
	options *Options
	runtime Runtime
	client  *client.Client[*corev1.Node]
	leases  *client.Client[*coordinationv1.Lease]
	work    *controller.Controller
	all     map[string]*nodeRecord
}

// nodeRecord is what is remembered of a node; its fields are the worker's own, as a
// key is with one at a time.
type nodeRecord struct {
	Node
	registered bool
	lease      *coordinationv1.Lease
	renewed    time.Time

	mu  sync.Mutex
	ips []string
}

func newNodes(s client.Source, rt Runtime, o *Options) *nodes {
	n := &nodes{
		options: o, runtime: rt, all: map[string]*nodeRecord{},
		client: client.Of[*corev1.Node](s), leases: client.Of[*coordinationv1.Lease](s).In(leaseNamespace),
	}
	first := make(chan controller.Notice, len(o.Nodes))
	for _, node := range o.Nodes {
		n.all[node.Name] = &nodeRecord{Node: node, ips: rt.Machine(node.Name).hostIPs()}
		first <- controller.Notice{Key: client.Key{Name: node.Name}, Note: "it begins"}
	}
	close(first)
	var which []informer.Option
	if len(o.Nodes) == 1 {
		which = append(which, informer.Fields("metadata.name="+o.Nodes[0].Name))
	}
	n.work = controller.New("node-heartbeats", n.reconcile,
		controller.For[*corev1.Node](controller.With(which...), controller.Where(func(_, now *corev1.Node) bool {
			return now != nil && n.has(now.Name)
		})),
		controller.Channel("agent", first), controller.Workers(4), controller.IgnoreOwnWrites(),
		controller.Backoff(workqueue.Exponential(200*time.Millisecond, 7*time.Second)), controller.RetryRate(-1, 0))
	return n
}

func (n *nodes) has(name string) bool { return n.all[name] != nil }

// hostIPs are the addresses of a node, as it last told them.
func (n *nodes) hostIPs(name string) []string {
	r := n.all[name]
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ips
}

// reconcile registers a node, tells how it is, and renews its lease.
func (n *nodes) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	r := n.all[req.Key.Name]
	if r == nil {
		return controller.Done, nil
	}
	m := n.runtime.Machine(r.Name)
	r.mu.Lock()
	r.ips = m.hostIPs()
	r.mu.Unlock()
	node, err := n.registered(ctx, r, m)
	if err != nil {
		return controller.Done, fmt.Errorf("register: %w", err)
	}
	if node != nil {
		if err := n.tell(ctx, node, m); err != nil {
			return controller.Done, fmt.Errorf("tell the status: %w", err)
		}
	}
	next, err := n.renew(ctx, r, node)
	if err != nil {
		return controller.Done, fmt.Errorf("renew the lease: %w", err)
	}
	return controller.RequeueAfter(time.Until(next)), nil
}

// registered returns the node, which it makes if it is not there when the agent
// begins. It is nil if somebody has deleted it since.
func (n *nodes) registered(ctx context.Context, r *nodeRecord, m Machine) (*corev1.Node, error) {
	node, err := n.client.Get(ctx, client.Key{Name: r.Name})
	switch {
	case err == nil && !r.registered:
		node, err = n.mark(ctx, node, n.labels(r, m), r.Annotations)
	case client.IsNotFound(err) && r.registered:
		return nil, nil
	case client.IsNotFound(err):
		node, err = n.client.Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: n.labels(r, m), Annotations: r.Annotations},
			Spec:       corev1.NodeSpec{Taints: r.Taints},
			Status:     nodeStatus(corev1.NodeStatus{}, m, n.runtime.Name(), time.Now()),
		}, client.FieldManager(fieldManager))
	}
	if err != nil {
		return nil, err
	}
	r.registered = true
	return node, nil
}

// labels are those that a node is registered with.
func (n *nodes) labels(r *nodeRecord, m Machine) map[string]string {
	out := map[string]string{corev1.LabelHostname: r.Name}
	if m.Info.OperatingSystem != "" {
		out[corev1.LabelOSStable] = m.Info.OperatingSystem
	}
	if m.Info.Architecture != "" {
		out[corev1.LabelArchStable] = m.Info.Architecture
	}
	maps.Copy(out, r.Labels)
	return out
}

// mark gives a node that was there before the labels and annotations that it lacks.
func (n *nodes) mark(ctx context.Context, node *corev1.Node, labels, annotations map[string]string) (*corev1.Node, error) {
	lacks := map[string]any{}
	for name, m := range map[string]struct{ has, want map[string]string }{"labels": {node.Labels, labels}, "annotations": {node.Annotations, annotations}} {
		if l := lacking(m.has, m.want); len(l) > 0 {
			lacks[name] = l
		}
	}
	if len(lacks) == 0 {
		return node, nil
	}
	return n.client.Patch(ctx, client.KeyOf(node), client.MergePatch(map[string]any{"metadata": lacks}), client.FieldManager(fieldManager))
}

// lacking is what is wanted and not there.
func lacking(has, want map[string]string) map[string]string {
	lacks := maps.Clone(want)
	maps.DeleteFunc(lacks, func(k, v string) bool { is, there := has[k]; return there && is == v })
	return lacks
}

// tell writes the status of a node if it is another, or was last written long ago.
func (n *nodes) tell(ctx context.Context, node *corev1.Node, m Machine) error {
	now := time.Now()
	status := nodeStatus(node.Status, m, n.runtime.Name(), now)
	if equality.Semantic.DeepEqual(withoutBeats(node.Status), withoutBeats(status)) && now.Sub(lastBeat(node)) < n.options.TellEvery {
		return nil
	}
	next := *node
	next.Status = status
	_, err := n.client.UpdateStatus(ctx, &next, client.FieldManager(fieldManager))
	return client.IgnoreNotFound(err)
}

// renew renews the lease of a node if it is time, and returns when it will be next.
func (n *nodes) renew(ctx context.Context, r *nodeRecord, node *corev1.Node) (time.Time, error) {
	now := time.Now()
	if next := r.renewed.Add(n.options.LeaseEvery); now.Before(next) {
		return next, nil
	}
	if r.lease == nil {
		lease, err := n.leases.Get(ctx, client.Key{Name: r.Name})
		if client.IgnoreNotFound(err) != nil {
			return now, err
		}
		if err == nil {
			r.lease = lease
		}
	}
	lease, err := n.write(ctx, n.lease(r, node, now), r.lease != nil)
	if err != nil {
		r.lease = nil // read it again
		return now, err
	}
	first := r.renewed.IsZero()
	r.lease, r.renewed = lease, now
	if first { // nodes that begin together are spread over the time between two renewals
		r.renewed = now.Add(-spread(r.Name, n.options.LeaseEvery))
	}
	return r.renewed.Add(n.options.LeaseEvery), nil
}

// lease is that of a node, renewed now. The node owns it, so that it goes with it.
func (n *nodes) lease(r *nodeRecord, node *corev1.Node, now time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: leaseNamespace}}
	if r.lease != nil {
		lease = r.lease.DeepCopy()
	}
	if node != nil {
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	duration, at := int32(n.options.LeaseFor/time.Second), metav1.NewMicroTime(now)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &r.Name, &duration, &at
	return lease
}

func (n *nodes) write(ctx context.Context, lease *coordinationv1.Lease, exists bool) (*coordinationv1.Lease, error) {
	if exists {
		return n.leases.Update(ctx, lease, client.FieldManager(fieldManager))
	}
	return n.leases.Create(ctx, lease, client.FieldManager(fieldManager))
}

// spread is a part of a time that is the same for a name each time.
func spread(name string, over time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return time.Duration(uint64(h.Sum32()) * uint64(over) >> 32)
}
