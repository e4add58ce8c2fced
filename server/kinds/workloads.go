package kinds

// workloads returns the kinds of apps, batch and autoscaling, and of what
// workloads are made of: services, volumes and quotas.
func workloads() []*Kind {
	return []*Kind{
		serviceKind(), endpointsKind(), replicationControllerKind(),
		persistentVolumeKind(), persistentVolumeClaimKind(), resourceQuotaKind(), limitRangeKind(),
		deploymentKind(), replicaSetKind(), statefulSetKind(), daemonSetKind(), controllerRevisionKind(),
		jobKind(), cronJobKind(), horizontalPodAutoscalerKind(), endpointSliceKind(),
		storageClassKind(), volumeAttachmentKind(), csiDriverKind(), csiNodeKind(), csiStorageCapacityKind(),
	}
}
