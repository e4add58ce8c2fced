package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/discovery"
	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/openapi"
)

// documents say what is served: discovery and OpenAPI. Both change with the
// definitions of custom resources.
type documents struct {
	openapi *openapi.Docs
	address string
	kinds   []*kinds.Kind

	mu sync.Mutex
	// resources are all custom resources; made is nil after they have changed.
	resources []*resource
	made      *discovery.Documents
}

func newDocuments(all []*kinds.Kind, address string) documents {
	return documents{openapi: openapi.New(openapi.FromKinds(all)), kinds: all, address: address}
}

// discovery returns the documents of discovery, made anew after a change.
func (a *API) discovery() *discovery.Documents {
	d := &a.docs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made == nil {
		all := discovery.FromKinds(d.kinds)
		for _, r := range d.resources {
			all = append(all, a.discoveredCustom(r))
		}
		d.made = discovery.New(all, d.address)
	}
	return d.made
}

// discoveredCustom is what discovery says of a custom resource.
func (a *API) discoveredCustom(r *resource) discovery.Resource {
	k := r.kind
	found := discovery.Resource{
		GroupVersion: r.gvk.GroupVersion(), Kind: k.GVK.Kind, Resource: k.Resource, Singular: k.Singular,
		ShortNames: k.ShortNames, Categories: k.Categories, Namespaced: k.Namespaced,
		Verbs: discovery.CustomVerbs(), Custom: true,
		StorageVersionHash: discovery.StorageVersionHash(r.custom.Stored.WithKind(k.GVK.Kind)),
	}
	if a.definitions.terminating(r.storage) {
		found.Verbs = discovery.TerminatingVerbs()
	}
	if k.HasStatus {
		found.Subresources = append(found.Subresources, discovery.StatusSubresource(k.GVK))
	}
	if k.Scale != nil {
		found.Subresources = append(found.Subresources, discovery.ScaleSubresource())
	}
	return found
}

// describeCustom brings the documents up to date after custom resources have
// changed.
func (a *API) describeCustom(changed []*resource) {
	var all []*resource
	for _, r := range a.registry.all() {
		if r.custom != nil {
			all = append(all, r)
		}
	}
	a.docs.mu.Lock()
	a.docs.resources, a.docs.made = all, nil
	a.docs.mu.Unlock()
	a.docs.describe(changed, all)
}

// openapiV2Proto is the media type of the OpenAPI document in protobuf.
const openapiV2Proto = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// serveOpenAPI answers for the documents that describe the API.
func (a *API) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/openapi/v2":
		a.serveOpenAPIV2(w, r)
	case path == "/openapi/v3":
		sendDocument(w, r, mediaJSON, a.docs.openapi.Index())
	case strings.HasPrefix(path, "/openapi/v3/"):
		a.serveOpenAPIV3(w, r, strings.TrimPrefix(path, "/openapi/v3/"))
	default:
		http.NotFound(w, r)
	}
}

func (a *API) serveOpenAPIV2(w http.ResponseWriter, r *http.Request) {
	for _, accepted := range parseAccept(r) {
		if accepted.media == openapiV2Proto {
			sendDocument(w, r, openapiV2Proto, a.docs.openapi.V2Proto())
			return
		}
		if media, ok := mediaFor(accepted.media); ok && media == mediaJSON {
			break
		}
	}
	sendDocument(w, r, mediaJSON, a.docs.openapi.V2())
}

// serveOpenAPIV3 sends one document. Its address in the index holds its hash:
// with the right one it may be kept for ever, with another it has moved.
func (a *API) serveOpenAPIV3(w http.ResponseWriter, r *http.Request, path string) {
	d, ok := a.docs.openapi.V3(path)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	switch hash := r.URL.Query().Get("hash"); {
	case hash == d.Hash:
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", a.now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	case hash != "":
		to := *r.URL
		q := to.Query()
		q.Set("hash", d.Hash)
		to.RawQuery = q.Encode()
		http.Redirect(w, r, to.String(), http.StatusMovedPermanently)
		return
	}
	sendDocument(w, r, mediaJSON, d)
}

func sendDocument(w http.ResponseWriter, r *http.Request, media string, d openapi.Document) {
	sendTagged(w, r, media, `"`+d.Hash+`"`, d.Body)
}

// sendTagged sends a document, unless the client has it already.
func sendTagged(w http.ResponseWriter, r *http.Request, media, etag string, body []byte) {
	h := w.Header()
	h.Set("Etag", etag)
	h.Set("Vary", "Accept")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	c := &call{w: w, r: r}
	_ = c.sendKeeping(media, body)
}

// sendKeeping is send without a word on caching.
func (c *call) sendKeeping(media string, body []byte) error {
	if c.w.Header().Get("Cache-Control") == "" {
		c.w.Header().Set("Cache-Control", "no-cache, private")
	}
	return c.sendBody(http.StatusOK, media, body)
}

// serveIndex lists the paths that are there to be looked at.
func (a *API) serveIndex(w http.ResponseWriter, r *http.Request) {
	paths := []string{"/.well-known/openid-configuration", "/healthz", "/healthz/etcd", "/healthz/ping", "/livez", "/livez/etcd", "/livez/ping",
		"/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/readyz", "/readyz/etcd", "/readyz/ping", "/version", "/apis", "/apis/", "/api"}
	for _, res := range a.registry.all() {
		prefix := "/apis/" + res.gvk.Group
		if res.gvk.Group == "" {
			prefix = "/api"
		}
		paths = append(paths, prefix, prefix+"/"+res.gvk.Version)
	}
	slices.Sort(paths)
	body, err := json.MarshalIndent(map[string][]string{"paths": slices.Compact(paths)}, "", "  ")
	if err != nil {
		SendError(w, r, err)
		return
	}
	_ = (&call{w: w, r: r}).sendKeeping(mediaJSON, body)
}

// serveDiscovery answers for the documents that say what is served.
func (a *API) serveDiscovery(w http.ResponseWriter, r *http.Request) {
	if _, _, _, ok := a.discovery().Lookup(r.URL.Path, discovery.JSON); ok && r.Method != http.MethodGet && r.Method != http.MethodHead {
		SendError(w, r, errMethodNotAllowed())
		return
	}
	for _, accepted := range parseAccept(r) {
		form, ok := discoveryForm(accepted)
		if !ok {
			continue
		}
		body, media, etag, ok := a.discovery().Lookup(r.URL.Path, form)
		switch {
		case !ok:
		case form == discovery.AggregatedJSON || form == discovery.AggregatedProtobuf:
			sendTagged(w, r, media, etag, body)
			return
		default:
			_ = (&call{w: w, r: r}).sendKeeping(media, body)
			return
		}
	}
	if _, _, _, ok := a.discovery().Lookup(r.URL.Path, discovery.JSON); ok {
		SendError(w, r, onlyPlain())
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		SendError(w, r, errNoSuchResource())
		return
	}
	if group, _, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/"); ok && a.discovery().HasGroup(group) && !a.isCustomGroup(group) {
		SendError(w, r, errNoSuchResource())
		return
	}
	http.NotFound(w, r)
}

// discoveryForm is what a client means by a media type, if anything.
func discoveryForm(a accept) (discovery.Form, bool) {
	media, ok := mediaFor(a.media)
	if !ok {
		return 0, false
	}
	aggregated := a.params["as"] == "APIGroupDiscoveryList" && a.params["g"] == "apidiscovery.k8s.io" && a.params["v"] == "v2"
	switch {
	case a.params["as"] != "" && !aggregated:
		return 0, false
	case aggregated && media == mediaProto:
		return discovery.AggregatedProtobuf, true
	case aggregated:
		return discovery.AggregatedJSON, true
	case media == mediaProto:
		return discovery.Protobuf, true
	}
	return discovery.JSON, true
}

// describe makes the OpenAPI documents anew of the group-versions of resources
// that have changed.
func (d *documents) describe(changed, all []*resource) {
	done := map[schema.GroupVersion]bool{}
	for _, r := range changed {
		gv := r.gvk.GroupVersion()
		if done[gv] {
			continue
		}
		done[gv] = true
		var resources []openapi.Resource
		for _, own := range openapi.FromKinds(d.kinds) {
			if own.GVK.GroupVersion() == gv {
				resources = append(resources, own)
			}
		}
		for _, other := range all {
			if other.gvk.GroupVersion() == gv {
				resources = append(resources, d.described(other))
			}
		}
		slices.SortFunc(resources, func(a, b openapi.Resource) int { return strings.Compare(a.Plural, b.Plural) })
		d.openapi.Update(gv, resources)
	}
}

// described is what OpenAPI says of a custom resource. A schema that cannot be
// read is none: who writes objects will hear of it.
func (d *documents) described(r *resource) openapi.Resource {
	def := r.custom.Definition()
	all := openapi.FromOutline(def.Outline(), func(version string) *apiextensionsv1.JSONSchemaProps {
		props, err := def.Props(version)
		if err != nil {
			return nil
		}
		return props
	})
	found := all[slices.IndexFunc(all, func(o openapi.Resource) bool { return o.GVK == r.gvk })]
	found.Fingerprint = fmt.Sprintf("%s/%d/%v", def.Metadata.UID, def.Metadata.Generation, def.Status.AcceptedNames)
	return found
}
