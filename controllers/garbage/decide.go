package garbage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownerState is what is known of an owner.
type ownerState uint8

const (
	// solid: it exists, and its deletion does not concern the dependent yet.
	solid ownerState = iota
	// absent: it does not exist where the reference says.
	absent
	// waiting: it is deleted in the foreground, and waits for its dependents.
	waiting
	// released: it is absent, and its deletion was to orphan its dependents.
	released
	// unknown: its kind is not served, or not yet.
	unknown
	// misplaced: it is in a namespace, and the dependent is in none.
	misplaced
)

// owner is one of an object's owners.
type owner struct {
	uid   types.UID
	state ownerState
	// unheard says that no event told of it yet, so that none may tell of its end.
	unheard bool
}

// seen is all that a decision about an object rests on.
type seen struct {
	// deleting is the object's deletion; orphaning and foreground are its finalizers.
	deleting, orphaning, foreground bool
	owners                          []owner
	// dependents says that it has some; circle that one of these is deleted in the
	// foreground.
	dependents, circle bool
	// blocked says that a dependent holds its deletion up; unheard that no event told
	// of that one yet.
	blocked, unheard bool
	// unsettled says that not all kinds are in the cache.
	unsettled bool
}

type verb uint8

const (
	nothing verb = iota
	// later: look again after a while.
	later
	// orphan takes the object out of its dependents' references, and lets it go.
	orphan
	// finish removes the finalizer of a deletion in the foreground.
	finish
	// drop removes references to owners.
	drop
	// remove deletes the object.
	remove
)

// plan is what is to be done with an object.
type plan struct {
	verb verb
	// uids are of the owners that drop removes.
	uids []types.UID
	// unblock has the object block none of its owners before it is deleted.
	unblock bool
	policy  metav1.DeletionPropagation
}

// decide says what becomes of an object.
func decide(s seen) plan {
	if s.deleting {
		return plan{verb: decideDeleted(s)}
	}
	by := map[ownerState][]types.UID{}
	unheard := false
	for _, o := range s.owners {
		by[o.state] = append(by[o.state], o.uid)
		unheard = unheard || o.state == solid && o.unheard
	}
	gone := append(by[absent], by[waiting]...)
	switch {
	case len(by[misplaced]) > 0:
		return plan{}
	case len(by[released]) > 0:
		return plan{verb: drop, uids: by[released]}
	case len(by[unknown]) > 0:
		return plan{verb: later}
	case len(by[solid]) > 0 && len(gone) > 0:
		return plan{verb: drop, uids: gone}
	case unheard:
		return plan{verb: later}
	case len(by[solid]) > 0 || len(gone) == 0:
		return plan{}
	case len(by[waiting]) > 0 && s.dependents:
		return plan{verb: remove, unblock: s.circle, policy: metav1.DeletePropagationForeground}
	}
	return plan{verb: remove, policy: policyOf(s)}
}

// decideDeleted is about objects that are being deleted: only finalizers of the
// collector's own hold it.
func decideDeleted(s seen) verb {
	switch {
	case !s.orphaning && !s.foreground:
		return nothing
	case s.unsettled:
		return later
	case s.orphaning:
		return orphan
	case s.blocked && s.unheard:
		return later
	case s.blocked:
		return nothing
	}
	return finish
}

// policyOf honours the finalizers that an object has already.
func policyOf(s seen) metav1.DeletionPropagation {
	switch {
	case s.orphaning:
		return metav1.DeletePropagationOrphan
	case s.foreground:
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}
