package openapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// path is one path of a document with its operations.
type path struct {
	path       string
	params     []parameter // of all operations
	operations []operation // sorted by method
}

// operation is one method of a path.
type operation struct {
	method, id, tag, description string
	action                       string
	gvk                          schema.GroupVersionKind
	params                       []parameter
	body                         *body
	produces                     []string
	responses                    []response // sorted by code
}

// body is what a request carries: a model, in one of several media types.
type body struct {
	model    string
	required bool
	consumes []string
}

// response is an answer: a model, or text if the model is "".
type response struct {
	code  string
	model string
	empty bool
}

func (r response) description() string {
	switch r.code {
	case "200":
		return "OK"
	case "201":
		return "Created"
	case "202":
		return "Accepted"
	}
	return "Unauthorized"
}

// answers returns a response with one model for each code, and that for who is
// not known.
func answers(model string, codes ...string) []response {
	var all []response
	for _, code := range codes {
		all = append(all, response{code: code, model: model})
	}
	return append(all, response{code: "401", empty: true})
}

const (
	jsonMedia     = "application/json"
	yamlMedia     = "application/yaml"
	protobufMedia = "application/vnd.kubernetes.protobuf"
	anyMedia      = "*/*"
)

var (
	objectMedia = []string{jsonMedia, protobufMedia, yamlMedia}
	listMedia   = []string{jsonMedia, jsonMedia + ";stream=watch", protobufMedia, protobufMedia + ";stream=watch", yamlMedia}
	patchMedia  = []string{
		"application/apply-patch+yaml", "application/json-patch+json",
		"application/merge-patch+json", "application/strategic-merge-patch+json",
	}
)

// jsonOnly leaves out the media types that custom resources do not have.
func jsonOnly(media []string) []string {
	return slices.DeleteFunc(slices.Clone(media), func(m string) bool {
		return strings.Contains(m, "protobuf") || strings.Contains(m, "strategic")
	})
}

// newPath puts operations, one at least, under a path and moves the parameters
// that all of them have to it.
func newPath(at string, operations ...operation) path {
	p := path{path: at}
	slices.SortFunc(operations, func(a, b operation) int { return strings.Compare(a.method, b.method) })
	for _, param := range operations[0].params {
		shared := true
		for _, op := range operations[1:] {
			shared = shared && slices.Contains(op.params, param)
		}
		if shared {
			p.params = append(p.params, param)
		}
	}
	for i := range operations {
		operations[i].params = slices.DeleteFunc(operations[i].params, func(q parameter) bool {
			return slices.Contains(p.params, q)
		})
	}
	p.operations = operations
	return p
}

// groupTitle is a group-version in the id of an operation: AppsV1, CoreV1,
// RbacAuthorizationV1.
func groupTitle(gv schema.GroupVersion) string {
	return groupName(gv.Group) + title(gv.Version)
}

// groupName is a group in an id: the words of its name, but for .k8s.io.
func groupName(group string) string {
	if group == "" {
		return "Core"
	}
	var name strings.Builder
	words := strings.FieldsFunc(strings.TrimSuffix(group, ".k8s.io"), func(r rune) bool { return r == '.' || r == '-' })
	for _, word := range words {
		name.WriteString(title(word))
	}
	return name.String()
}

// groupTag is a group-version as a tag: apps_v1, rbacAuthorization_v1.
func groupTag(group, version string) string {
	name := groupName(group)
	name = strings.ToLower(name[:1]) + name[1:]
	if version == "" {
		return name
	}
	return name + "_" + version
}

func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
