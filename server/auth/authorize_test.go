package auth

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMastersOnly(t *testing.T) {
	master := User{Name: "m", Groups: []string{"system:masters"}}
	user := User{Name: "u", Groups: []string{"system:authenticated"}}
	tests := map[string]struct {
		user User
		ask  Attributes
		want bool
	}{
		"a master and a resource":      {master, Attributes{Verb: "delete", Resource: "nodes"}, true},
		"a master and a path":          {master, Attributes{Verb: "get", Path: "/metrics"}, true},
		"a user and a resource":        {user, Attributes{Verb: "get", Resource: "pods", Namespace: "default"}, false},
		"a user and discovery":         {user, Attributes{Verb: "get", Path: "/apis"}, false},
		"health":                       {Anonymous(), Attributes{Verb: "get", Path: "/healthz"}, true},
		"liveness":                     {Anonymous(), Attributes{Verb: "get", Path: "/livez"}, true},
		"readiness, one check":         {Anonymous(), Attributes{Verb: "get", Path: "/readyz/poststarthook/x"}, false},
		"version":                      {Anonymous(), Attributes{Verb: "get", Path: "/version"}, true},
		"version/":                     {Anonymous(), Attributes{Verb: "get", Path: "/version/"}, true},
		"below version":                {Anonymous(), Attributes{Verb: "get", Path: "/version/x"}, false},
		"what starts like health":      {Anonymous(), Attributes{Verb: "get", Path: "/healthzz"}, false},
		"a way out of health":          {Anonymous(), Attributes{Verb: "get", Path: "/healthz/../metrics"}, false},
		"a write to health":            {Anonymous(), Attributes{Verb: "post", Path: "/healthz"}, false},
		"a resource with a path":       {Anonymous(), Attributes{Verb: "get", Path: "/healthz", Resource: "pods"}, false},
		"a group that is like masters": {User{Name: "m", Groups: []string{"system:master"}}, Attributes{Verb: "get", Path: "/"}, false},
	}
	for name, tt := range tests {
		got, err := MastersOnly().Authorize(context.Background(), tt.user, tt.ask)
		if diff := cmp.Diff(Decision{Allowed: tt.want}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestForbiddenMessage(t *testing.T) {
	tests := map[string]struct {
		ask    Attributes
		reason string
		want   string
	}{
		"a path":                 {Attributes{Verb: "get", Path: "/apis"}, "", `forbidden: User "x" cannot get path "/apis"`},
		"in a namespace":         {Attributes{Verb: "list", Resource: "pods", Namespace: "default"}, "", `pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"`},
		"in a group":             {Attributes{Verb: "create", Resource: "roles", Group: "rbac.authorization.k8s.io", Namespace: "n"}, "", `roles.rbac.authorization.k8s.io is forbidden: User "x" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "n"`},
		"at the cluster scope":   {Attributes{Verb: "get", Resource: "nodes", Name: "a"}, "", `nodes "a" is forbidden: User "x" cannot get resource "nodes" in API group "" at the cluster scope`},
		"a subresource":          {Attributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "n", Name: "p"}, "", `pods "p" is forbidden: User "x" cannot create resource "pods/exec" in API group "" in the namespace "n"`},
		"with a reason":          {Attributes{Verb: "get", Path: "/x"}, "no RBAC", `forbidden: User "x" cannot get path "/x": no RBAC`},
		"what looks like a page": {Attributes{Verb: "get", Path: "/<b>&"}, "", `forbidden: User "x" cannot get path "/&lt;b&gt;&amp;"`},
	}
	for name, tt := range tests {
		if got := ForbiddenMessage(User{Name: "x"}, tt.ask, tt.reason); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tt.want)
		}
	}
}

func TestUserOfContext(t *testing.T) {
	if got := UserOf(context.Background()); got.Name != UserAnonymous {
		t.Errorf("a context without a user has %q", got.Name)
	}
	if got := UserOf(WithUser(context.Background(), User{Name: "x"})); got.Name != "x" {
		t.Errorf("got %q", got.Name)
	}
}
