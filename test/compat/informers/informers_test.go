// Package informers keeps client-go's informers on our server while it is
// written to at random, its connections are cut and it is restarted, and holds
// their caches and what their handlers were told against the truth.
package informers

import (
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // reflectors tell of each cut
	os.Exit(m.Run())
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// variant is a way to have an informer of config maps.
type variant struct {
	media string
	// client is typed, dynamic or metadata.
	client   string
	selector string
	// http1 keeps the client from HTTP/2.
	http1 bool
}

// variants are those that are run with WatchList on, and with it off.
var variants = map[string]variant{
	"json":          {media: runtime.ContentTypeJSON, client: "typed"},
	"protobuf":      {media: runtime.ContentTypeProtobuf, client: "typed"},
	"dynamic":       {media: runtime.ContentTypeJSON, client: "dynamic", http1: true},
	"metadata":      {client: "metadata"},
	"json-some":     {media: runtime.ContentTypeJSON, client: "typed", selector: "color=red"},
	"protobuf-some": {media: runtime.ContentTypeProtobuf, client: "typed", selector: "color!=red", http1: true},
}

// requests counts what an informer asks for.
type requests struct {
	lists, streamed, watches atomic.Int64
}

func (r *requests) count(req *http.Request) {
	q := req.URL.Query()
	switch {
	case q.Get("sendInitialEvents") == "true":
		r.streamed.Add(1)
	case q.Get("watch") != "":
		r.watches.Add(1)
	default:
		r.lists.Add(1)
	}
}

// states is how often the whole state was asked for.
func (r *requests) states() int64 { return r.lists.Load() + r.streamed.Load() }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func counted(config *rest.Config, r *requests) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			r.count(req)
			return next.RoundTrip(req)
		})
	})
	return config
}

// informer returns one that is not started. Each has a connection of its own.
func (v variant) informer(t *testing.T, config *rest.Config) cache.SharedIndexInformer {
	t.Helper()
	config.ContentType = v.media
	config.Dial = (&net.Dialer{}).DialContext // clients with the same one share connections
	if v.http1 {
		config.NextProtos = []string{"http/1.1"}
	}
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = v.selector }
	switch v.client {
	case "dynamic":
		return dynamicinformer.NewFilteredDynamicInformer(must(dynamic.NewForConfig(config))(t), configMaps, "", 0, nil, tweak).Informer()
	case "metadata":
		return metadatainformer.NewFilteredMetadataInformer(must(metadata.NewForConfig(config))(t), configMaps, "", 0, nil, tweak).Informer()
	}
	factory := informers.NewSharedInformerFactoryWithOptions(must(kubernetes.NewForConfig(config))(t), 0, informers.WithTweakListOptions(tweak))
	return factory.Core().V1().ConfigMaps().Informer()
}

// kept is an informer that runs.
type kept struct {
	cache.SharedIndexInformer
	variant
	requests
	*history
}

// watched is a server with informers that reach it through a proxy.
type watched struct {
	cluster.Engine
	server     *cluster.Server
	client     kubernetes.Interface
	namespaces []string
	proxy      *cluster.Proxy
	truth      *ledger
	informers  map[string]*kept
}

// keep starts a server for each engine whose objects outlive it, and on each
// keeps an informer of each variant, with WatchList on and off, until the test
// ends. All start here: the gate of WatchList is one for the process, and read
// when an informer starts.
func keep(t *testing.T, namespaces int, options ...cluster.Option) (all []*watched) {
	t.Helper()
	for _, e := range cluster.Engines {
		if e.Lasting {
			s := e.Start(t, options...)
			c := must(kubernetes.NewForConfig(s.Admin()))(t)
			all = append(all, &watched{
				Engine: e, server: s, client: c, namespaces: newNamespaces(t, c, namespaces),
				proxy: cluster.NewProxy(t, s.Address), truth: newLedger(), informers: map[string]*kept{},
			})
		}
	}
	for mode, on := range map[string]bool{"watchlist": true, "list": false} {
		featurestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, on)
		for _, w := range all {
			for name, v := range variants {
				w.informers[mode+"/"+name] = w.keep(t, v, on)
			}
		}
	}
	return all
}

func (w *watched) keep(t *testing.T, v variant, watchList bool) *kept {
	t.Helper()
	k := &kept{variant: v, history: &history{truth: w.truth, last: map[string]seen{}}}
	k.SharedIndexInformer = v.informer(t, counted(w.server.AdminAt(w.proxy.Address), &k.requests))
	must(k.AddEventHandler(k.history))(t)
	runInformer(t, k)
	if used := k.streamed.Load() > 0; used != watchList {
		t.Errorf("%+v: the state was streamed: %v, want %v", v, used, watchList)
	}
	return k
}

// mustSettle waits until all informers hold what a fresh list does.
func (w *watched) mustSettle(t *testing.T) {
	t.Helper()
	fresh := must(w.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}))(t)
	for name, k := range w.informers {
		k.mustEqual(t, name, fresh)
	}
}

// runInformer starts an informer and returns once it is in sync.
func runInformer(t *testing.T, i cache.SharedIndexInformer) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(t.Context())
	}()
	t.Cleanup(func() { <-done })
	if !cache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("an informer did not sync")
	}
}

// must returns what a call returned, in a test that cannot go on without:
// must(call())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func keyOf(m metav1.Object) string { return m.GetNamespace() + "/" + m.GetName() }
