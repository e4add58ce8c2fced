package webhook_test

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/webhook"
)

// Boat is example.com/v1, the hub.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BoatSpec `json:"spec"`
}

type BoatSpec struct {
	Centimetres int      `json:"centimetres,omitempty"`
	Crew        []Sailor `json:"crew,omitempty"`
}

type Sailor struct {
	Name string `json:"name"`
	Rank string `json:"rank,omitempty"`
}

func (*Boat) APIKind() schema.GroupVersionKind { return boatKind("v1") }
func (b *Boat) DeepCopyObject() runtime.Object { return copied(b) }

// BetaBoat is v1beta1, which has metres.
type BetaBoat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Metres int      `json:"metres,omitempty"`
		Crew   []Sailor `json:"crew,omitempty"`
	} `json:"spec"`
}

func (*BetaBoat) APIKind() schema.GroupVersionKind { return boatKind("v1beta1") }
func (b *BetaBoat) DeepCopyObject() runtime.Object { return copied(b) }

// AlphaBoat is v1alpha1, which has feet and knows no ranks.
type AlphaBoat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Feet  int      `json:"feet,omitempty"`
		Names []string `json:"names,omitempty"`
	} `json:"spec"`
}

func (*AlphaBoat) APIKind() schema.GroupVersionKind { return boatKind("v1alpha1") }
func (b *AlphaBoat) DeepCopyObject() runtime.Object { return copied(b) }

func boatKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Boat"}
}

func copied[T any](obj *T) *T {
	out := new(T)
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// conversions are of all versions. Ranks are kept in an annotation.
func conversions() webhook.Hook {
	return webhook.Convert(
		webhook.Version(
			func(from *BetaBoat, to *Boat) error {
				to.Spec.Centimetres, to.Spec.Crew = from.Spec.Metres*100, from.Spec.Crew
				return nil
			},
			func(from *Boat, to *BetaBoat) error {
				to.Spec.Metres, to.Spec.Crew = from.Spec.Centimetres/100, from.Spec.Crew
				return nil
			},
		),
		webhook.Version(upFromAlpha, downToAlpha),
	)
}

const crewAnnotation = "example.com/crew"

func upFromAlpha(from *AlphaBoat, to *Boat) error {
	if from.Spec.Feet < 0 {
		return errors.New("a boat of less than nothing")
	}
	to.Spec.Centimetres = from.Spec.Feet * 30
	crew := to.Annotations[crewAnnotation]
	delete(to.Annotations, crewAnnotation)
	if crew != "" {
		return json.Unmarshal([]byte(crew), &to.Spec.Crew)
	}
	for _, name := range from.Spec.Names {
		to.Spec.Crew = append(to.Spec.Crew, Sailor{Name: name})
	}
	return nil
}

func downToAlpha(from *Boat, to *AlphaBoat) error {
	to.Name, to.Finalizers = "another", nil // is undone
	to.Spec.Feet = from.Spec.Centimetres / 30
	for _, s := range from.Spec.Crew {
		to.Spec.Names = append(to.Spec.Names, s.Name)
	}
	crew, err := json.Marshal(from.Spec.Crew)
	if len(from.Spec.Crew) > 0 {
		metav1.SetMetaDataAnnotation(&to.ObjectMeta, crewAnnotation, string(crew))
	}
	return err
}
