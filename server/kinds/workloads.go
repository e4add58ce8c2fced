package kinds

// workloads returns the kinds of apps, batch and autoscaling.
func workloads() []*Kind { return nil }
