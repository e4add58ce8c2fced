package rest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/auth"
)

// serveSubresource answers a request about a part or a deed of an object.
func (c *call) serveSubresource() error {
	sub := c.target.subresource
	switch {
	case sub == "status" && c.res.kind.HasStatus:
		return c.serveSide("status", nil)
	case sub == "scale" && c.res.kind.Scale != nil:
		return c.serveScale()
	case c.res.custom != nil:
		return c.notFound()
	case c.res.subresource(sub) == nil:
		return errNoSuchResource()
	}
	own := c.res.subresource(sub)
	if !slices.Contains(own.Verbs, c.target.verb(c.r.Method, false)) || c.r.Method == http.MethodHead {
		return errMethodNotAllowed()
	}
	if own.Prepare != nil {
		return c.serveSide(sub, func(wanted, old runtime.Object) runtime.Object {
			own.Prepare(wanted, old)
			return wanted
		})
	}
	switch c.res.storage + "/" + sub {
	case "pods/binding":
		return c.post(c.bind)
	case "pods/eviction":
		return c.post(c.evict)
	case "serviceaccounts/token":
		return c.post(c.issueToken)
	default:
		return c.onNode()
	}
}

func (c *call) post(serve func() error) error {
	if c.r.Method != http.MethodPost {
		return errMethodNotAllowed()
	}
	return serve()
}

// onNode answers for what only the node of a pod can do.
func (c *call) onNode() error {
	current, err := c.current()
	if err != nil {
		return err
	}
	obj, err := c.res.decoded(current)
	if err != nil {
		return err
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		switch c.target.subresource {
		case "log":
			return c.log(pod)
		case "exec", "attach", "portforward":
			return c.connect(pod)
		}
	}
	return c.noAgent()
}

// noAgent is that nobody can be asked for what only a node can do.
func (c *call) noAgent() error {
	return notImplemented(fmt.Sprintf("no node agent serves %s of %s %s: this server reaches none", c.target.subresource, c.res.kind.Singular, c.target.name))
}

// serveSide answers for one side of an object. merge takes over that side; nil
// is for the status.
func (c *call) serveSide(sub string, merge func(wanted, old runtime.Object) runtime.Object) error {
	switch c.r.Method {
	case http.MethodGet:
		return c.get()
	case http.MethodPut:
		return c.updateSide(sub, merge)
	case http.MethodPatch:
		if merge == nil {
			return c.patch(sub)
		}
		return c.patchSide(sub, merge)
	}
	return errMethodNotAllowed()
}

// decodeInto reads the request's body as a kind that is not stored.
func (c *call) decodeInto(gvk schema.GroupVersionKind, into runtime.Object) error {
	return c.decodeStrictly(gvk, into, intent{fieldValidation: metav1.FieldValidationIgnore})
}

// decodeStrictly does so, and tells of what is not part of the kind.
func (c *call) decodeStrictly(gvk schema.GroupVersionKind, into runtime.Object, in intent) error {
	body, err := readBody(c.r)
	if err != nil {
		return err
	}
	_, strict, err := c.api.codec.decode(contentType(c.r), body, gvk, into)
	if err != nil {
		return err
	}
	return c.handleStrict(strict, in)
}

// bind puts a pod on a node. The pod is named by the path or, where a binding is
// posted as an object, by the binding.
func (c *call) bind() error {
	o, err := c.createOptions()
	if err != nil {
		return err
	}
	var b corev1.Binding
	in := c.intent(o.DryRun, o.FieldManager, o.FieldValidation)
	if err := c.decodeStrictly(corev1.SchemeGroupVersion.WithKind("Binding"), &b, in); err != nil {
		return err
	}
	if c.target.name == "" {
		c.target.name, c.res = b.Name, c.api.registry.stored("", "pods")
	}
	target := field.NewPath("target")
	switch {
	case b.Name != c.target.name:
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	case b.Target.Kind != "" && b.Target.Kind != "Node":
		return field.NotSupported(target.Child("kind"), b.Target.Kind, []string{"Node", "<empty>"})
	case b.Target.Name == "":
		return field.Required(target.Child("name"), "")
	}
	return c.change(change{
		intent: in, subresource: "binding", lenient: true, untracked: true,
		make:   func(old runtime.Object) (runtime.Object, error) { return c.bound(old.(*corev1.Pod), b) },
		merge:  func(wanted, _ runtime.Object) runtime.Object { return wanted },
		answer: func(runtime.Object) error { return c.created() },
	})
}

// created is the answer to a deed that was done.
func (c *call) created() error {
	return c.sendObject(http.StatusCreated, success(http.StatusCreated, nil))
}

func (c *call) bound(pod *corev1.Pod, b corev1.Binding) (runtime.Object, error) {
	refuse := func(format string, args ...any) (runtime.Object, error) {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, fmt.Errorf(format, args...))
	}
	switch {
	case b.UID != "" && b.UID != pod.UID:
		return nil, c.sameIdentity(&b, pod)
	case pod.DeletionTimestamp != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return refuse("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	}
	pod.Spec.NodeName = b.Target.Name
	for k, v := range b.Annotations {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, k, v)
	}
	pod.Status.NominatedNodeName = "" // it has served its purpose
	pod.Status.Conditions = withCondition(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.api.now()),
	})
	return pod, nil
}

// withCondition puts a condition in the place of the one of its type, or adds it.
func withCondition(conditions []corev1.PodCondition, c corev1.PodCondition) []corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == c.Type {
			conditions[i] = c
			return conditions
		}
	}
	return append(conditions, c)
}

// The life of a service account's token.
const (
	tokenLife    = time.Hour
	tokenAtLeast = 10 * time.Minute
	tokenAtMost  = 1 << 32
)

var errNoTokens = errors.New("this server issues no tokens: it was started without a signing key")

// issueToken makes a token for a service account.
func (c *call) issueToken() error {
	gvk := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
	var req authenticationv1.TokenRequest
	if err := c.decodeInto(gvk, &req); err != nil {
		return err
	}
	if req.Name != "" && req.Name != c.target.name {
		return apierrors.NewInvalid(gvk.GroupKind(), c.target.name, field.ErrorList{field.Invalid(metadataPath.Child("name"), req.Name, "must match the service account name if specified")})
	}
	current, err := c.current()
	if err != nil {
		return err
	}
	account, err := c.res.decoded(current)
	if err != nil {
		return err
	}
	life := tokenLife
	if req.Spec.ExpirationSeconds != nil {
		life = time.Duration(*req.Spec.ExpirationSeconds) * time.Second
	}
	path := field.NewPath("spec", "expirationSeconds")
	switch seconds := int64(life / time.Second); {
	case life < tokenAtLeast:
		return apierrors.NewInvalid(gvk.GroupKind(), "", field.ErrorList{field.Invalid(path, seconds, "may not specify a duration less than 10 minutes")})
	case seconds > tokenAtMost:
		return apierrors.NewInvalid(gvk.GroupKind(), "", field.ErrorList{field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")})
	}
	return c.answerToken(req, accessor(account), life)
}

func (c *call) answerToken(req authenticationv1.TokenRequest, account metav1.Object, life time.Duration) error {
	if c.api.tokens == nil {
		return apierrors.NewServiceUnavailable(errNoTokens.Error())
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = c.api.tokens.Audiences()
	}
	seconds := int64(life / time.Second)
	req.Spec.ExpirationSeconds = &seconds
	wanted := auth.TokenRequest{
		Namespace: account.GetNamespace(), ServiceAccount: auth.Ref{Name: account.GetName(), UID: string(account.GetUID())},
		Audiences: req.Spec.Audiences, Lifetime: life,
	}
	if err := c.bindToken(&wanted, req.Spec.BoundObjectRef); err != nil {
		return err
	}
	token, expires, err := c.api.tokens.Issue(wanted)
	if err != nil {
		return err
	}
	req.Name, req.Namespace, req.UID = account.GetName(), account.GetNamespace(), account.GetUID()
	req.CreationTimestamp = metav1.NewTime(c.api.now())
	req.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return c.sendObject(http.StatusCreated, &req)
}

// bindToken ties a token to the object that the request names, which must be.
func (c *call) bindToken(wanted *auth.TokenRequest, to *authenticationv1.BoundObjectReference) error {
	if to == nil {
		return nil
	}
	var into **auth.Ref
	name, namespace := "", c.target.namespace
	switch to.Kind {
	case "Pod":
		into, name = &wanted.Pod, "pods"
	case "Secret":
		into, name = &wanted.Secret, "secrets"
	case "Node":
		into, name, namespace = &wanted.Node, "nodes", ""
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to %s %q of unknown kind", c.target.name, to.Kind, to.Name))
	}
	r := c.api.registry.stored("", name)
	o := r.objects.Get(namespace, to.Name)
	if o == nil {
		return apierrors.NewNotFound(r.groupResource(), to.Name)
	}
	obj, err := r.decoded(o)
	if err != nil {
		return err
	}
	uid := accessor(obj).GetUID()
	if to.UID != "" && to.UID != uid {
		return apierrors.NewConflict(r.groupResource(), to.Name, fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", to.UID))
	}
	*into = &auth.Ref{Name: to.Name, UID: string(uid)}
	return nil
}
