package kinds

// core returns the kinds of the group "" that describe what runs and what it is
// told, and those of events.k8s.io and coordination.k8s.io.
func core() []*Kind {
	return []*Kind{
		bindingKind(), configMapKind(), eventKind(), namespaceKind(), nodeKind(),
		podKind(), podTemplateKind(), secretKind(), serviceAccountKind(), leaseKind(),
	}
}
