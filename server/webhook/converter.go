package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Converter changes the version of the objects of one CustomResourceDefinition,
// by the strategy that it names. It may be used by many goroutines.
type Converter struct {
	crd      string
	listKind string
	versions map[schema.GroupVersion]bool
	// hook is nil if versions differ in their name only.
	hook   *Hook
	review schema.GroupVersion
}

// NewConverter returns the converter of crd as it is now, and keeps nothing of
// it. A webhook that cannot be called as it is configured is [ErrConfig]. It does
// no I/O. The client may be nil for the strategy None.
func NewConverter(crd *apiextensionsv1.CustomResourceDefinition, client *Client) (*Converter, error) {
	c := &Converter{
		crd:      crd.Name,
		listKind: crd.Spec.Names.ListKind,
		versions: make(map[schema.GroupVersion]bool, len(crd.Spec.Versions)),
	}
	if c.listKind == "" {
		c.listKind = crd.Spec.Names.Kind + "List"
	}
	for _, v := range crd.Spec.Versions {
		c.versions[schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}] = true
	}
	how := crd.Spec.Conversion
	switch {
	case how == nil || how.Strategy == apiextensionsv1.NoneConverter:
		return c, nil
	case how.Strategy != apiextensionsv1.WebhookConverter:
		return nil, fmt.Errorf("%w: unknown conversion strategy %q for CRD %s", ErrConfig, how.Strategy, crd.Name)
	}
	if err := c.setHook(how.Webhook, client); err != nil {
		return nil, fmt.Errorf("conversion webhook for CRD %s: %w", crd.Name, err)
	}
	return c, nil
}

func (c *Converter) setHook(how *apiextensionsv1.WebhookConversion, client *Client) (err error) {
	if how == nil || how.ClientConfig == nil {
		return fmt.Errorf("%w: no client configuration", ErrConfig)
	}
	known := slices.IndexFunc(how.ConversionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" })
	if known < 0 {
		return fmt.Errorf("%w: no supported conversion review versions", ErrConfig)
	}
	c.review = schema.GroupVersion{Group: apiextensionsv1.GroupName, Version: how.ConversionReviewVersions[known]}
	if client == nil {
		return errors.New("no client to call webhooks with")
	}
	where := how.ClientConfig
	c.hook, err = client.Hook(Config{URL: where.URL, Service: (*Service)(where.Service), CABundle: where.CABundle})
	return err
}

// Convert returns objs in the version to, in their order. All that are in
// another version are sent to the webhook in one call, which takes at most
// [DefaultTimeout]. Either all are converted or none.
//
// objs and what they hold are not changed. An object that need not be sent is
// returned as it is or shares its fields with the original.
func (c *Converter) Convert(ctx context.Context, objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	if err := c.checkVersions(objs, to); err != nil {
		return nil, err
	}
	out := slices.Clone(objs)
	var sent []int
	for i, obj := range objs {
		switch {
		case obj.GetAPIVersion() == to.String():
		case c.hook == nil || isEmpty(obj):
			out[i] = renamed(obj, to)
		default:
			sent = append(sent, i)
		}
	}
	if len(sent) == 0 {
		return out, nil
	}
	answer, err := c.ask(ctx, objs, sent, to)
	if err != nil {
		return nil, err
	}
	for n, i := range sent {
		if out[i], err = c.accept(answer[n], objs[i], to, c.wordsFor(objs, n, to)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *Converter) checkVersions(objs []*unstructured.Unstructured, to schema.GroupVersion) error {
	if !c.versions[to] {
		return fmt.Errorf("CRD %s: request to convert CR to an invalid group/version: %s", c.crd, to)
	}
	for i, obj := range objs {
		gv := obj.GroupVersionKind().GroupVersion()
		switch {
		case c.versions[gv]:
		case len(objs) == 1:
			return fmt.Errorf("CRD %s: request to convert CR from an invalid group/version: %s", c.crd, gv)
		default:
			return fmt.Errorf("CRD %s: request to convert CR list failed, list index %d has invalid group/version: %s", c.crd, i, gv)
		}
	}
	return nil
}

// isEmpty says that an object is nothing but its kind, which no webhook is asked about.
func isEmpty(obj *unstructured.Unstructured) bool {
	_, kind := obj.Object["kind"]
	_, version := obj.Object["apiVersion"]
	return kind && version && len(obj.Object) == 2
}

func renamed(obj *unstructured.Unstructured, to schema.GroupVersion) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	out.SetAPIVersion(to.String())
	return out
}

// accept checks one object of an answer and gives it the metadata of the original.
func (c *Converter) accept(raw runtime.RawExtension, original *unstructured.Unstructured, to schema.GroupVersion, w words) (*unstructured.Unstructured, error) {
	converted := new(unstructured.Unstructured)
	if err := converted.UnmarshalJSON(raw.Raw); err != nil {
		return nil, c.blame(w.about, "returned %s: %v", w.typed, err)
	}
	want, got := to.WithKind(original.GetKind()), converted.GroupVersionKind()
	if want.GroupVersion() != got.GroupVersion() {
		return nil, c.blame(w.about, "returned %s: invalid groupVersion (expected %v, received %v)", w.typed, to, got.GroupVersion())
	}
	if want.Kind != got.Kind {
		return nil, c.blame(w.about, "returned %s: invalid kind (expected %v, received %v)", w.typed, want.Kind, got.Kind)
	}
	if err := checkIdentity(original, converted); err != nil {
		return nil, c.blame(w.about, "returned %s: %v", w.object, err)
	}
	if err := restoreMetadata(original, converted); err != nil {
		return nil, c.blame(w.about, "returned %s: %v", w.metadata, err)
	}
	return converted, nil
}

// words are kube-apiserver's for what is wrong with one object of an answer.
type words struct {
	about                   schema.GroupVersionKind
	typed, object, metadata string
}

// wordsFor is about the n-th object of an answer. One object is spoken of as
// itself, several as a list.
func (c *Converter) wordsFor(objs []*unstructured.Unstructured, n int, to schema.GroupVersion) words {
	about := c.about(objs, to)
	if len(objs) == 1 {
		return words{about, "invalid object at index 0", "invalid object", "invalid metadata"}
	}
	object := fmt.Sprintf("invalid converted object at index %d", n)
	return words{about, object, object, fmt.Sprintf("invalid metadata in object at index %d", n)}
}

// about is the kind that errors name.
func (c *Converter) about(objs []*unstructured.Unstructured, to schema.GroupVersion) schema.GroupVersionKind {
	if len(objs) == 1 {
		return objs[0].GroupVersionKind()
	}
	return to.WithKind(c.listKind)
}

// blame is an error about what the webhook answered.
func (c *Converter) blame(about schema.GroupVersionKind, format string, args ...any) error {
	what := shorten(fmt.Sprintf(format, args...))
	return fmt.Errorf("conversion webhook for %v %s (%s)", about, what, c.hook.URL())
}
