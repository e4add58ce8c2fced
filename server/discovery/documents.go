package discovery

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Form is how a client wants a document.
type Form int

// The forms. Only /api and /apis are there in the aggregated ones.
const (
	JSON Form = iota
	Protobuf
	AggregatedJSON
	AggregatedProtobuf
)

// Aggregated are the media type parameters that ask for the aggregated forms.
const Aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Documents are all documents of discovery. They never change, and may be used
// by several goroutines; each is encoded when it is first asked for, and once.
type Documents struct {
	byPath     map[string]*document // no trailing slash
	aggregated map[string]*document
}

// New arranges resources into documents. Clients are told to reach the server
// at address, a host and a port.
func New(resources []Resource, address string) *Documents {
	var core group
	var others []group
	for _, g := range arrange(resources) {
		if g.name == "" {
			core = g
		} else {
			others = append(others, g)
		}
	}
	d := &Documents{
		byPath: map[string]*document{
			"/api":  newDocument("", apiVersions(core, address)),
			"/apis": newDocument("", apiGroupList(others)),
		},
		aggregated: map[string]*document{
			"/api":  newDocument(Aggregated, aggregate([]group{core})),
			"/apis": newDocument(Aggregated, aggregate(others)),
		},
	}
	d.addGroup("/api", core)
	for _, g := range others {
		one := apiGroup(g)
		one.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		d.byPath["/apis/"+g.name] = newDocument("", &one)
		d.addGroup("/apis/"+g.name, g)
	}
	return d
}

func (d *Documents) addGroup(path string, g group) {
	for _, v := range g.versions {
		d.byPath[path+"/"+v.version] = newDocument("", apiResourceList(g.name, v))
	}
}

// Lookup returns the document at a path, its media type and its quoted entity
// tag, which is the same in both encodings. There are none at other paths than
// those of discovery, and none for groups and versions without resources.
func (d *Documents) Lookup(path string, form Form) (body []byte, contentType, etag string, ok bool) {
	docs := d.byPath
	if form == AggregatedJSON || form == AggregatedProtobuf {
		docs = d.aggregated
	}
	doc, ok := docs[strings.TrimSuffix(path, "/")]
	if !ok {
		return nil, "", "", false
	}
	body, contentType = doc.json()
	if form == Protobuf || form == AggregatedProtobuf {
		body, contentType = doc.protobuf()
	}
	return body, contentType, doc.etag(), true
}

// HasGroup reports whether a group has resources. What is missing below one that
// has is answered otherwise than what is missing altogether.
func (d *Documents) HasGroup(name string) bool {
	_, ok := d.byPath["/apis/"+name]
	return ok
}
