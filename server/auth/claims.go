package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Ref names an object that a token is bound to.
type Ref struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// Claims are what a service account's token says.
type Claims struct {
	Audience  audience         `json:"aud"`
	Expires   numericDate      `json:"exp"`
	IssuedAt  numericDate      `json:"iat"`
	Issuer    string           `json:"iss"`
	ID        string           `json:"jti,omitempty"`
	NotBefore numericDate      `json:"nbf"`
	Subject   string           `json:"sub"`
	Private   KubernetesClaims `json:"kubernetes.io"`
}

// KubernetesClaims name the service account, and the one object its token is
// bound to (with a pod, its node too).
type KubernetesClaims struct {
	Namespace      string `json:"namespace"`
	ServiceAccount Ref    `json:"serviceaccount"`
	Pod            *Ref   `json:"pod,omitempty"`
	Secret         *Ref   `json:"secret,omitempty"`
	Node           *Ref   `json:"node,omitempty"`
}

// Username is the name of a service account as a user.
func Username(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// User is whom the token stands for.
func (c Claims) User() User {
	k := c.Private
	u := User{
		Name:   c.Subject,
		UID:    k.ServiceAccount.UID,
		Groups: []string{GroupServiceAccounts, GroupServiceAccounts + ":" + k.Namespace},
		Extra:  map[string][]string{},
	}
	extra := func(key, value string) {
		if value != "" {
			u.Extra[key] = []string{value}
		}
	}
	if c.ID != "" {
		extra(ExtraCredentialID, "JTI="+c.ID)
	}
	if k.Pod != nil {
		extra(ExtraPodName, k.Pod.Name)
		extra(ExtraPodUID, k.Pod.UID)
	}
	if k.Node != nil {
		extra(ExtraNodeName, k.Node.Name)
		extra(ExtraNodeUID, k.Node.UID)
	}
	return u
}

// leeway is how much the clocks of servers that share a key may differ.
const leeway = time.Minute

// check holds claims against the issuer, the audiences of which one must be
// theirs, and the time.
func (c Claims) check(issuer string, audiences []string, now time.Time) error {
	k := c.Private
	switch {
	case c.Issuer != issuer:
		return fmt.Errorf("issuer is %q, want %q", c.Issuer, issuer)
	case c.Expires == 0:
		return errors.New("it never expires")
	case !now.Before(c.Expires.time()):
		return errors.New("it has expired")
	case now.Add(leeway).Before(c.NotBefore.time()):
		return errors.New("it is not valid yet")
	case now.Add(leeway).Before(c.IssuedAt.time()):
		return errors.New("it is issued in the future")
	case !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(c.Audience, a) }):
		return fmt.Errorf("its audience %q is none of %q", []string(c.Audience), audiences)
	case k.Namespace == "" || k.ServiceAccount.Name == "" || k.ServiceAccount.UID == "":
		return errors.New("it names no service account")
	case c.Subject != Username(k.Namespace, k.ServiceAccount.Name) || strings.Contains(k.Namespace, ":"):
		return fmt.Errorf("its subject is %q", c.Subject)
	}
	return nil
}

// audience is one string or a list of them.
type audience []string

// UnmarshalJSON takes both forms.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// numericDate is a time in seconds since 1970.
type numericDate int64

func (d numericDate) time() time.Time { return time.Unix(int64(d), 0) }
