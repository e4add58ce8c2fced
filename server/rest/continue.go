package rest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/storage"
)

// token is what a continue parameter holds: where the next page starts, and of
// which state. The revision -1 means whatever is newest.
type token struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const (
	tokenVersion = "meta.k8s.io/v1"
	anyRevision  = -1
)

func (t token) encode() (string, error) {
	t.Version = tokenVersion
	raw, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

func parseToken(s string) (token, error) {
	var t token
	bad := func(why any) (token, error) {
		return token{}, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", why))
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return bad(fmt.Sprintf("continue key is not valid: %v", err))
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return bad(fmt.Sprintf("continue key is not valid: %v", err))
	}
	switch {
	case t.Version != tokenVersion:
		return bad(fmt.Sprintf("continue key is not valid: server does not recognize this encoded version %s", t.Version))
	case t.Revision == 0:
		return bad("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return bad("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	case slices.Contains(strings.Split(t.Start, "/"), ".."):
		return bad("continue key is not valid: " + t.Start)
	}
	t.Revision = max(t.Revision, anyRevision)
	return t, nil
}

func (t token) at() storage.Revision { return storage.Revision(t.Revision) }
