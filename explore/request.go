package explore

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// call is what a request is about.
type call struct {
	verb string
	// path is that of the resource in all namespaces: /apis/apps/v1/deployments.
	path string
	// resource is with its subresource: deployments/status.
	resource        string
	namespace, name string
	// conditional says that it is to be done to one revision of the object only.
	conditional bool
}

// String is how a call is named in plans and reports: create pods default/web-~.
func (c call) String() string {
	name := c.name
	if c.namespace != "" {
		name = c.namespace + "/" + name
	}
	return c.verb + " " + c.resource + " " + name
}

// verbs are those of requests that change something.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// parse tells what a request is about; the resource is empty if it is about none.
func parse(req *http.Request) call {
	path, rest := split(req.URL)
	c := call{path: path, verb: verbs[req.Method]}
	if len(rest) > 2 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize" {
		c.namespace, rest = rest[1], rest[2:]
	}
	if len(rest) == 0 || rest[0] == "" {
		return call{}
	}
	c.path, c.resource = path+"/"+rest[0], rest[0]
	if len(rest) > 1 {
		c.name = rest[1]
	}
	if len(rest) > 2 {
		c.resource += "/" + strings.Join(rest[2:], "/")
	}
	switch media, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")); {
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") == "true":
		c.verb = "watch"
	case req.Method == http.MethodGet && c.name == "":
		c.verb = "list"
	case media == string(types.ApplyPatchType):
		c.verb = "apply"
	}
	return c
}

// split cuts a path after group and version, and leaves out what comes before them.
func split(u *url.URL) (path string, rest []string) {
	for root, skip := range map[string]int{"/api/": 1, "/apis/": 2} {
		if i := strings.Index(u.Path, root); i >= 0 {
			parts := strings.Split(u.Path[i+len(root):], "/")
			skip = min(skip, len(parts))
			return root + strings.Join(parts[:skip], "/"), parts[skip:]
		}
	}
	return "", nil
}

// quietly are resources whose writes are no part of what a controller achieves.
var quietly = []string{"events", "leases"}

// counts reports whether the call is a write that matters.
func (c call) counts(query url.Values) bool {
	switch {
	case c.resource == "" || !slices.Contains([]string{"create", "update", "patch", "apply", "delete"}, c.verb):
		return false
	case strings.HasPrefix(c.path, "/apis/authorization.k8s.io/"), strings.HasPrefix(c.path, "/apis/authentication.k8s.io/"):
		return false
	}
	return !slices.Contains(quietly, c.resource) && query.Get("dryRun") == ""
}

// named is what explore needs to know of a body.
type named struct {
	Metadata struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
		Revision     string `json:"resourceVersion"`
	} `json:"metadata"`
	Preconditions struct {
		Revision string `json:"resourceVersion"`
	} `json:"preconditions"`
}

// bodyOf reads what a request carries, which can then be read again.
func bodyOf(req *http.Request) (named, error) {
	var n named
	if req.Body == nil || req.Body == http.NoBody {
		return n, nil
	}
	content, err := io.ReadAll(req.Body)
	if err != nil {
		return n, err
	}
	if err := req.Body.Close(); err != nil {
		return n, err
	}
	req.Body = io.NopCloser(bytes.NewReader(content))
	_ = json.Unmarshal(content, &n) // patches of other forms have their name in the path
	return n, nil
}

// touched is the annotation by which another changes an object.
const touched = "explore.evenkeel.dev/touched"

// touch is a request that changes the object of another request.
func touch(req *http.Request, c call) *http.Request {
	u := *req.URL
	u.RawQuery, u.RawPath = "", ""
	if _, sub, found := strings.Cut(c.resource, "/"); found {
		u.Path = strings.TrimSuffix(u.Path, "/"+sub)
	}
	t := req.Clone(req.Context())
	t.Method, t.URL = http.MethodPatch, &u
	t.Header.Set("Content-Type", string(types.MergePatchType))
	body := `{"metadata":{"annotations":{"` + touched + `":"true"}}}`
	t.Body, t.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return t
}

// buffer reads an answer whole, so that nothing of it depends on what follows.
func buffer(resp *http.Response) ([]byte, error) {
	content, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(content))
	return content, err
}
