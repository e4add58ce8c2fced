package rest

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/auth"
)

// TokenReviewer says whose a token is, and for which of the audiences.
type TokenReviewer func(ctx context.Context, token string, audiences []string) (user auth.User, accepted []string, err error)

// requester is who makes the request, as objects have it.
func (c *call) requester() authenticationv1.UserInfo { return userInfo(auth.UserOf(c.ctx())) }

func userInfo(u auth.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for k, v := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[k] = authenticationv1.ExtraValue(v)
	}
	return info
}

// review answers a question about who is who, and may do what. Nothing is
// stored.
func (c *call) review() error {
	if c.out.as == "Table" {
		return notAcceptable("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf")
	}
	o, err := c.createOptions()
	if err != nil {
		return err
	}
	obj, err := c.readObject(c.intent(o.DryRun, o.FieldManager, o.FieldValidation))
	if err != nil {
		return err
	}
	if c.res.kind.Namespaced {
		if err := c.checkNamespace(accessor(obj)); err != nil {
			return err
		}
	}
	rules := c.res.rules()
	if rules.validate != nil {
		if errs := rules.validate(obj); len(errs) > 0 { // as in the real server, without its kind
			return apierrors.NewInvalid(schema.GroupKind{Group: c.res.gvk.Group}, "", errs)
		}
	}
	if err := c.judge(obj); err != nil {
		return err
	}
	return c.answerObject(http.StatusCreated, obj)
}

func (c *call) judge(obj runtime.Object) error {
	user := auth.UserOf(c.ctx())
	switch r := obj.(type) {
	case *authenticationv1.SelfSubjectReview:
		r.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(c.api.now())}
		r.Status.UserInfo = userInfo(user)
		return nil
	case *authenticationv1.TokenReview:
		return c.judgeToken(r)
	case *authorizationv1.SubjectAccessReview:
		return c.judgeAccess(subject(r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, &r.Status)
	case *authorizationv1.LocalSubjectAccessReview:
		return c.judgeAccess(subject(r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, &r.Status)
	case *authorizationv1.SelfSubjectAccessReview:
		return c.judgeAccess(user, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, &r.Status)
	case *authorizationv1.SelfSubjectRulesReview:
		if r.Spec.Namespace == "" {
			return apierrors.NewBadRequest("no namespace on request")
		}
		*r = authorizationv1.SelfSubjectRulesReview{TypeMeta: r.TypeMeta, Status: rulesOf(user)}
		return nil
	}
	return errMethodNotAllowed()
}

// subject is the user that a review asks about.
func subject(s authorizationv1.SubjectAccessReviewSpec) auth.User {
	u := auth.User{Name: s.User, UID: s.UID, Groups: s.Groups, Extra: map[string][]string{}}
	for k, v := range s.Extra {
		u.Extra[k] = v
	}
	return u
}

// rulesOf lists what is known without RBAC: masters may do everything.
func rulesOf(u auth.User) authorizationv1.SubjectRulesReviewStatus {
	if !u.In(auth.GroupMasters) {
		return authorizationv1.SubjectRulesReviewStatus{
			ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		}
	}
	all := []string{"*"}
	return authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
}

func (c *call) judgeAccess(u auth.User, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes, status *authorizationv1.SubjectAccessReviewStatus) error {
	if c.api.authorizer == nil {
		return apierrors.NewServiceUnavailable("this server was started without an authorizer")
	}
	var a auth.Attributes
	if n != nil {
		a = auth.Attributes{Verb: n.Verb, Path: n.Path}
	}
	if r != nil {
		a = auth.Attributes{
			Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource,
			Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
		}
	}
	decision, err := c.api.authorizer.Authorize(c.ctx(), u, a)
	*status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Reason: decision.Reason}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return nil
}

func (c *call) judgeToken(r *authenticationv1.TokenReview) error {
	if c.api.reviewToken == nil {
		return apierrors.NewServiceUnavailable("this server was started without an authenticator")
	}
	if r.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	user, audiences, err := c.api.reviewToken(c.ctx(), r.Spec.Token, r.Spec.Audiences)
	if err != nil {
		r.Status = authenticationv1.TokenReviewStatus{Error: err.Error()}
		return nil
	}
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: userInfo(user), Audiences: audiences}
	return nil
}
