package scheduler

// What may help pods that were rejected, by what happens.
var (
	all = ^reasons(0)

	podCame     = set(notNear, spreadSkew)
	podWent     = set(insufficient, portsTaken, spreadSkew, notNear, notApart, keptApart)
	podChanged  = podCame | podWent
	nodeWent    = set(spreadSkew, notNear, notApart, keptApart)
	labelsMoved = set(notNear, notApart, keptApart) // of namespaces
)

// helps returns which pods a change of a node may help.
func (c nodeChange) helps() (out reasons) {
	if c&nodeAdded != 0 {
		return all
	}
	if c&nodeLabels != 0 {
		out |= set(otherNode, spreadLabel, spreadSkew, notNear, notApart, keptApart)
	}
	if c&nodeTaints != 0 {
		out |= set(unschedulable, untolerated, spreadSkew)
	}
	if c&nodeResources != 0 {
		out |= set(insufficient)
	}
	return out
}
