// Package operator brings up the applications that CloudManagers ask for.
//
// A reconcile observes: it reads what there is from the caches. Then it decides, by a
// function of nothing but what was seen, what is to be written and what is to be said
// of the application. Then it acts.
//
// The parts come up in order: the database, then identity, then front. Each is looked
// at when most replicas of the one before are ready. A change of the specification
// goes the same way.
package operator
