package kinds

import "slices"

// All returns every built-in kind, in the order of discovery.
func All() []*Kind {
	return slices.Concat(core(), workloads(), policy())
}
