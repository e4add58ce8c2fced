// Package rest is the Kubernetes API over HTTP: verbs, negotiation, discovery,
// OpenAPI and streaming, the same for all kinds.
//
// Reads come from the hub's memory and are sent as the bytes they are stored
// in. A write decodes the object, fills it in and checks it by its kind, commits
// it to the store if nobody else was first, and is answered when all readers of
// this server see it.
package rest

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/patch"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/server/webhook"
	"github.com/even-keel/evenkeel/storage"
)

// Config is what an [API] needs.
type Config struct {
	Store storage.Store
	// Hub follows Store; it must be loaded.
	Hub    *watch.Hub
	Kinds  []*kinds.Kind
	Scheme *runtime.Scheme
	Logger *slog.Logger
	// Now is the clock; nil is the system's.
	Now func() time.Time
	// Address is where clients are told to reach the server: a host and a port.
	Address string
	// Tokens makes tokens of service accounts; nil refuses to.
	Tokens *auth.TokenIssuer
	// Authorizer and ReviewToken answer reviews; nil refuses them.
	Authorizer  auth.Authorizer
	ReviewToken TokenReviewer
	// Services says which addresses and ports services get.
	Services ServiceRange
	// Nodes finds the agents of nodes, for what only they know; nil knows none.
	Nodes Nodes
}

// API serves the paths below /api and /apis. Make one with [New].
type API struct {
	store    storage.Store
	hub      *watch.Hub
	codec    *codec
	types    *patch.Types
	registry registry
	services ServiceRange
	docs     documents
	// definitions serve custom resources, conversions convert them by webhook.
	definitions definitions
	conversions custom.Webhooks
	webhooks    *webhook.Client
	log         *slog.Logger
	now         func() time.Time

	tokens      *auth.TokenIssuer
	authorizer  auth.Authorizer
	reviewToken TokenReviewer
	nodes       Nodes
}

// New returns an API that serves the given kinds.
func New(c Config) *API {
	a := &API{
		store: c.Store, hub: c.Hub, codec: newCodec(c.Scheme), types: patch.NewTypes(nil),
		registry: registry{versions: map[schema.GroupVersion]map[string]*resource{}},
		services: c.Services.withDefaults(),
		log:      c.Logger, now: c.Now, tokens: c.Tokens,
		authorizer: c.Authorizer, reviewToken: c.ReviewToken, nodes: c.Nodes,
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	for _, k := range c.Kinds {
		a.register(k)
	}
	a.docs = newDocuments(c.Kinds, c.Address)
	a.webhooks = webhook.NewClient(webhook.Options{Resolver: a})
	a.conversions = func(crd *apiextensionsv1.CustomResourceDefinition) (custom.Converter, error) {
		return webhook.NewConverter(crd, a.webhooks)
	}
	a.definitions.api, a.definitions.byName = a, map[string]*custom.Definition{}
	return a
}

// Close ends connections that the API keeps to webhooks.
func (a *API) Close() { a.webhooks.Close() }

// ServeHTTP answers requests about resources and about the API itself.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/openapi/") {
		a.serveOpenAPI(w, r)
		return
	}
	if r.URL.Path == "/" {
		a.serveIndex(w, r)
		return
	}
	t, ok := parseTarget(r.URL.Path)
	if !ok {
		a.serveDiscovery(w, r)
		return
	}
	a.serveResource(w, r, t)
}
