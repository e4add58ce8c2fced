package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/even-keel/evenkeel/client"
)

// Request is what somebody wants to do with an object. Beside the fields below it has
// all that the API server sent: Operation, UserInfo, Name, SubResource and so on.
type Request[T client.Object] struct {
	*admissionv1.AdmissionRequest
	// Object is what is to be stored. When something is deleted, it is nil.
	Object T
	// Old is what is stored; nil when something is created.
	Old T

	warnings []string
	audit    map[string]string
}

// DryRun reports whether nothing is going to be stored: there must be no side effects.
func (r *Request[T]) DryRun() bool {
	return r.AdmissionRequest.DryRun != nil && *r.AdmissionRequest.DryRun
}

// Warn tells the user something, whatever becomes of the request.
func (r *Request[T]) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Audit adds an annotation to the audit event of the request.
func (r *Request[T]) Audit(key, value string) {
	if r.audit == nil {
		r.audit = map[string]string{}
	}
	r.audit[key] = value
}

// Invalid is the error of an object with wrong fields, and nil if there are none.
func (r *Request[T]) Invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}, r.Name, errs)
}

// Undecided is the error of a function that cannot tell: whether the request is
// refused is up to the failure policy of the webhook.
func Undecided(err error) error { return undecided{err} }

type undecided struct{ error }

func (u undecided) Unwrap() error { return u.error }

// Mutate calls f for objects that are created or updated. What f changes of
// [Request].Object is changed before the object is stored. API servers may call f
// twice: it has to leave alone what it has done.
func Mutate[T client.Object](f func(context.Context, *Request[T]) error, opts ...HookOption) Hook {
	return admissionHook("mutate", f, opts)
}

// Validate calls f for objects that are created or updated, or what [On] says. What f
// changes is forgotten.
func Validate[T client.Object](f func(context.Context, *Request[T]) error, opts ...HookOption) Hook {
	return admissionHook("validate", f, opts)
}

func admissionHook[T client.Object](verb string, f func(context.Context, *Request[T]) error, opts []HookOption) Hook {
	h := Hook{verb: verb, kindOf: kindFunc[T], operations: []admissionv1.Operation{admissionv1.Create, admissionv1.Update}}
	h.review = func(ctx context.Context, r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		return review(ctx, r, f, verb == "mutate")
	}
	for _, opt := range opts {
		opt(&h)
	}
	return h
}

// review answers one request. An error is not a refusal: the failure policy decides.
func review[T client.Object](ctx context.Context, r *admissionv1.AdmissionRequest, f func(context.Context, *Request[T]) error, mutates bool) (*admissionv1.AdmissionResponse, error) {
	req := &Request[T]{AdmissionRequest: r}
	var err, errOld error
	req.Object, err = decode[T](r.Object.Raw)
	req.Old, errOld = decode[T](r.OldObject.Raw)
	if err := errors.Join(err, errOld); err != nil {
		return nil, fmt.Errorf("%w: %w", errReview, err)
	}
	var before any
	if mutates {
		if before, err = treeOf(req.Object); err != nil {
			return nil, err
		}
	}
	err = f(ctx, req)
	if _, ok := errors.AsType[undecided](err); ok {
		return nil, err
	}
	answer := &admissionv1.AdmissionResponse{Allowed: err == nil, Warnings: req.warnings, AuditAnnotations: req.audit}
	if err != nil {
		answer.Result = statusOf(err)
		return answer, nil
	}
	if before != nil {
		err = addPatch(answer, r.Object.Raw, before, req.Object)
	}
	return answer, err
}

// addPatch has the answer do to the object, as it was sent, what was done to obj.
func addPatch(answer *admissionv1.AdmissionResponse, sent []byte, before any, obj client.Object) error {
	after, err := treeOf(obj)
	if err != nil {
		return err
	}
	raw, err := parse(sent)
	if err != nil {
		return fmt.Errorf("%w: %w", errReview, err)
	}
	if after == nil {
		return errors.New("the function has set the object to nil")
	}
	var p patch
	p.compare("", raw, transfer(raw, before, after))
	if len(p) == 0 {
		return nil
	}
	how := admissionv1.PatchTypeJSONPatch
	answer.PatchType = &how
	answer.Patch, err = json.Marshal(p)
	return err
}

// statusOf is how an error is told: as itself if it is one of the API, and otherwise
// as 403.
func statusOf(err error) *metav1.Status {
	out := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		out = known.Status()
	}
	out.Status, out.Message = metav1.StatusFailure, err.Error()
	return &out
}

// errReview says that a request is not as API servers send them.
var errReview = errors.New("malformed review")

var admissionReview = admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")

// answer answers an AdmissionReview.
func (h Hook) answer(ctx context.Context, body []byte) (any, error) {
	request, err := readAdmission(body, h.gvk)
	if err != nil {
		return nil, err
	}
	answer, err := h.review(ctx, request)
	if err != nil {
		return nil, err
	}
	answer.UID = request.UID
	out := &admissionv1.AdmissionReview{Response: answer}
	out.SetGroupVersionKind(admissionReview)
	return out, nil
}

// readAdmission reads the request of an AdmissionReview, which has to be for a kind.
func readAdmission(body []byte, kind schema.GroupVersionKind) (*admissionv1.AdmissionRequest, error) {
	var in admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", errReview, err)
	}
	if got := in.GroupVersionKind(); got != admissionReview || in.Request == nil {
		return nil, fmt.Errorf("%w: want a request in %v, got %v", errReview, admissionReview, got)
	}
	if got := schema.GroupVersionKind(in.Request.Kind); got != kind {
		return nil, fmt.Errorf("%w: this is the webhook of %v, not of %v", errReview, kind, got)
	}
	return in.Request, nil
}
