package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	kjson "sigs.k8s.io/json"
)

const reviewKind = "ConversionReview"

// ask sends the objects with the given indexes, and returns as many.
func (c *Converter) ask(ctx context.Context, objs []*unstructured.Unstructured, sent []int, to schema.GroupVersion) ([]runtime.RawExtension, error) {
	about := c.about(objs, to)
	uid := uuid.NewUUID()
	body, err := c.encodeReview(objs, sent, to, uid)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: encode the objects: %w", about, err)
	}
	// A converted object may be longer than the original, but not without bound.
	data, err := c.hook.Post(ctx, Call{Body: body, MaxAnswer: DefaultMaxAnswer + 4*int64(len(body))})
	if err != nil {
		return nil, fmt.Errorf("conversion webhook for %v failed: %w", about, err)
	}
	converted, err := c.decodeReview(data, uid)
	if err != nil {
		return nil, c.blame(about, "failed: %v", err)
	}
	if len(converted) != len(sent) {
		return nil, c.blame(about, "returned %d objects, expected %d", len(converted), len(sent))
	}
	return converted, nil
}

// encodeReview makes the request. v1 and v1beta1 have the same fields. There is
// an empty response in it because kube-apiserver sends one, and webhooks fill it in.
func (c *Converter) encodeReview(objs []*unstructured.Unstructured, sent []int, to schema.GroupVersion, uid types.UID) ([]byte, error) {
	raw := make([]runtime.RawExtension, len(sent))
	for n, i := range sent {
		raw[n].Object = objs[i]
	}
	return json.Marshal(&apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: c.review.String(), Kind: reviewKind},
		Request:  &apiextensionsv1.ConversionRequest{UID: uid, DesiredAPIVersion: to.String(), Objects: raw},
		Response: &apiextensionsv1.ConversionResponse{},
	})
}

// decodeReview returns the objects of a successful answer. As in kube-apiserver,
// an answer in v1beta1 need repeat neither its kind nor the uid.
func (c *Converter) decodeReview(data []byte, uid types.UID) ([]runtime.RawExtension, error) {
	var review apiextensionsv1.ConversionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &review); err != nil {
		return nil, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	strict := c.review.Version == "v1"
	if want, got := c.review.WithKind(reviewKind), review.GroupVersionKind(); strict && got != want {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, got)
	}
	response := review.Response
	switch {
	case response == nil:
		return nil, errors.New("no response provided")
	case strict && response.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, response.UID)
	case response.Result.Status == metav1.StatusSuccess:
		return response.ConvertedObjects, nil
	case response.Result.Message != "":
		return nil, errors.New(response.Result.Message)
	}
	return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", response.Result.Status)
}
