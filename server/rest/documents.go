package rest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/even-keel/evenkeel/server/discovery"
	"github.com/even-keel/evenkeel/server/openapi"
)

// openapiV2Proto is the media type of the OpenAPI document in protobuf.
const openapiV2Proto = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

// serveOpenAPI answers for the documents that describe the API.
func (a *API) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/openapi/v2":
		a.serveOpenAPIV2(w, r)
	case path == "/openapi/v3":
		sendDocument(w, r, mediaJSON, a.docs.Index())
	case strings.HasPrefix(path, "/openapi/v3/"):
		a.serveOpenAPIV3(w, r, strings.TrimPrefix(path, "/openapi/v3/"))
	default:
		http.NotFound(w, r)
	}
}

func (a *API) serveOpenAPIV2(w http.ResponseWriter, r *http.Request) {
	for _, accepted := range parseAccept(r) {
		if accepted.media == openapiV2Proto {
			sendDocument(w, r, openapiV2Proto, a.docs.V2Proto())
			return
		}
		if media, ok := mediaFor(accepted.media); ok && media == mediaJSON {
			break
		}
	}
	sendDocument(w, r, mediaJSON, a.docs.V2())
}

// serveOpenAPIV3 sends one document. Its address in the index holds its hash:
// with the right one it may be kept for ever, with another it has moved.
func (a *API) serveOpenAPIV3(w http.ResponseWriter, r *http.Request, path string) {
	d, ok := a.docs.V3(path)
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
	if _, _, _, ok := a.discovery.Lookup(r.URL.Path, discovery.JSON); ok && r.Method != http.MethodGet && r.Method != http.MethodHead {
		SendError(w, r, errMethodNotAllowed())
		return
	}
	for _, accepted := range parseAccept(r) {
		form, ok := discoveryForm(accepted)
		if !ok {
			continue
		}
		body, media, etag, ok := a.discovery.Lookup(r.URL.Path, form)
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
	if _, _, _, ok := a.discovery.Lookup(r.URL.Path, discovery.JSON); ok {
		SendError(w, r, onlyPlain())
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		SendError(w, r, errNoSuchResource())
		return
	}
	if group, _, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/"); ok && a.discovery.HasGroup(group) {
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
