package server

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/server/auth"
)

func TestImpersonation(t *testing.T) {
	master := auth.User{Name: "admin", Groups: []string{auth.GroupMasters}}
	s := New(Config{Authorizer: auth.MastersOnly()})
	tests := map[string]struct {
		user    auth.User
		headers map[string][]string
		want    auth.User
		refused string
	}{
		"nobody": {user: master, want: master},
		"a user": {
			user: master, headers: map[string][]string{impersonateUser: {"ann"}},
			want: auth.User{Name: "ann", Groups: []string{auth.GroupAuthenticated}},
		},
		"a user with groups": {
			user: master, headers: map[string][]string{impersonateUser: {"ann"}, impersonateGroup: {"devs", auth.GroupAuthenticated}},
			want: auth.User{Name: "ann", Groups: []string{"devs", auth.GroupAuthenticated}},
		},
		"a service account": {
			user: master, headers: map[string][]string{impersonateUser: {"system:serviceaccount:ns:sa"}},
			want: auth.User{Name: "system:serviceaccount:ns:sa", Groups: []string{
				auth.GroupServiceAccounts, auth.GroupServiceAccounts + ":ns", auth.GroupAuthenticated,
			}},
		},
		"extras": {
			user: master, headers: map[string][]string{impersonateUser: {"ann"}, "Impersonate-Extra-Example.com%2fScope": {"a", "b"}},
			want: auth.User{
				Name: "ann", Groups: []string{auth.GroupAuthenticated},
				Extra: map[string][]string{"example.com/scope": {"a", "b"}},
			},
		},
		"by one who may not": {
			user: auth.User{Name: "bob"}, headers: map[string][]string{impersonateUser: {"ann"}}, refused: "users",
		},
		"groups without a user": {
			user: master, headers: map[string][]string{impersonateGroup: {"devs"}}, refused: "users",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{Header: tt.headers}
			got, refused, err := s.impersonated(context.Background(), r, tt.user)
			if err != nil {
				t.Fatal(err)
			}
			if tt.refused != "" {
				if refused == nil || refused.Resource != tt.refused {
					t.Errorf("refused is %+v", refused)
				}
				return
			}
			if refused != nil {
				t.Fatalf("refused: %+v", refused)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
