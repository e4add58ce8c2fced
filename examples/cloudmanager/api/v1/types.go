// Package v1 has the Go types of cloudmanagers.cloudmanagercontroller.huayun.com.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of all types of this package.
var GroupVersion = schema.GroupVersion{Group: "cloudmanagercontroller.huayun.com", Version: "v1"}

// CloudManager asks for an application of three parts.
type CloudManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CloudManagerSpec   `json:"spec"`
	Status CloudManagerStatus `json:"status,omitzero"`
}

// APIKind tells clients the kind, without a scheme.
func (*CloudManager) APIKind() schema.GroupVersionKind { return GroupVersion.WithKind("CloudManager") }

// CloudManagerSpec is what the application should be.
type CloudManagerSpec struct {
	Front    Part     `json:"front"`
	Identity Part     `json:"identity"`
	DB       Database `json:"db"`
}

// Part is a program of the application.
type Part struct {
	Image string `json:"image"`
	// Name is that of the object that runs it.
	Name string `json:"name"`
	// Replicas is how many there should be; nil is one.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Database is the part that keeps the data.
type Database struct {
	Part    `json:",inline"`
	Storage Storage `json:"storage"`
	// RootPass is the password of the database's administrator.
	RootPass string `json:"rootPass"`
}

// Storage is the volume of each replica.
type Storage struct {
	// StorageClassName is the class of the volume; "" is the cluster's default.
	StorageClassName string   `json:"storageClassName,omitempty"`
	AccessModes      []string `json:"accessModes"`
	// Size is a quantity. It is a string here so that one which is none can be read,
	// and told of.
	Size string `json:"size"`
}

// Phase is how far an application has come.
type Phase string

// The phases of an application.
const (
	// Pending: something that is not the application's is in the way.
	Pending Phase = "Pending"
	// Starting parts wait until most of their replicas are ready.
	StartingDB       Phase = "StartingDB"
	StartingIdentity Phase = "StartingIdentity"
	StartingFront    Phase = "StartingFront"
	Running          Phase = "Running"
	// Failed: the specification has to be changed.
	Failed Phase = "Failed"
)

// The types of the conditions.
const (
	Ready         = "Ready"
	DBReady       = "DBReady"
	IdentityReady = "IdentityReady"
	FrontReady    = "FrontReady"
)

// CloudManagerStatus is what became of it.
type CloudManagerStatus struct {
	Phase              Phase              `json:"phase,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}
