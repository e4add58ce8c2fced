package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// pod is what this program wants to know of a pod.
type pod struct {
	Metadata struct {
		Namespace, Name string
		ResourceVersion string
	}
	Spec   struct{ NodeName string }
	Status struct{ Phase string }
}

func (p pod) key() string { return p.Metadata.Namespace + "/" + p.Metadata.Name }

// watcher follows pods by hand.
//
// A list tells the state and its revision; a watch from that revision tells all
// that happens after it. A watch that ends goes on from the last revision that was
// seen. When the server has forgotten that (410), all begins anew, and what went
// meanwhile is found by comparing.
type watcher struct {
	http  *http.Client
	path  *url.URL
	out   io.Writer
	known map[string]string // the revisions of pods, by key
	// revision is where to go on from; "" if a list is needed.
	revision string
}

// errForgotten says that the server no longer has the revision.
var errForgotten = errors.New("410 Gone: the revision is too old")

func plain(ctx context.Context, cfg *rest.Config, namespace string, stdout, stderr io.Writer) error {
	w, err := newWatcher(cfg, namespace, stdout)
	if err != nil {
		return err
	}
	if err := w.list(ctx); err != nil { // if the first does not work, nothing will
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	for {
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errForgotten):
			w.revision = ""
		case err != nil:
			fmt.Fprintln(stderr, "podwatch:", err, "- trying again in a second")
		default:
			continue // the server ends watches now and then
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func newWatcher(cfg *rest.Config, namespace string, out io.Writer) (*watcher, error) {
	transport, err := rest.HTTPClientFor(cfg) // with the certificates and tokens of the kubeconfig
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	path := base.JoinPath("api/v1/pods")
	if namespace != "" {
		path = base.JoinPath("api/v1/namespaces", namespace, "pods")
	}
	return &watcher{http: transport, path: path, out: out, known: map[string]string{}}, nil
}

// follow lists if it must, and then watches until the watch ends.
func (w *watcher) follow(ctx context.Context) error {
	if w.revision == "" {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	return w.watch(ctx)
}

func (w *watcher) list(ctx context.Context) error {
	body, err := w.get(ctx, url.Values{})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []pod
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return fmt.Errorf("read the list: %w", err)
	}
	here := map[string]bool{}
	for _, p := range list.Items {
		here[p.key()] = true
		w.see(p)
	}
	for _, key := range slices.Sorted(maps.Keys(w.known)) {
		if !here[key] { // it was deleted while nobody watched
			w.lose(key)
		}
	}
	w.revision = list.Metadata.ResourceVersion
	return nil
}

// event is a line of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

func (w *watcher) watch(ctx context.Context) error {
	body, err := w.get(ctx, url.Values{"watch": {"true"}, "resourceVersion": {w.revision}, "allowWatchBookmarks": {"true"}})
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	for lines := json.NewDecoder(body); ; {
		var e event
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the watch: %w", err)
		}
		if err := w.take(e); err != nil {
			return err
		}
	}
}

// take takes an event in, and remembers its revision.
func (w *watcher) take(e event) error {
	if e.Type == "ERROR" {
		return failure(e.Object)
	}
	var p pod
	if err := json.Unmarshal(e.Object, &p); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		w.see(p)
	case "DELETED":
		w.lose(p.key())
	case "BOOKMARK": // nothing but a revision
	}
	w.revision = p.Metadata.ResourceVersion
	return nil
}

// see prints a pod that is new or has changed.
func (w *watcher) see(p pod) {
	before, known := w.known[p.key()]
	if before == p.Metadata.ResourceVersion {
		return
	}
	what := "added"
	if known {
		what = "updated"
	}
	w.known[p.key()] = p.Metadata.ResourceVersion
	fmt.Fprintln(w.out, line(what, p.key(), p.Status.Phase, p.Spec.NodeName))
}

func (w *watcher) lose(key string) {
	if _, known := w.known[key]; known {
		delete(w.known, key)
		fmt.Fprintln(w.out, line("deleted", key, "", ""))
	}
}

// get returns the body of an answer that is a success.
func (w *watcher) get(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	u := *w.path
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	status, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	return nil, failure(status)
}

// failure makes an error of a Status.
func failure(raw []byte) error {
	var status struct {
		Message string
		Code    int
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("the server answered %q", raw)
	}
	if status.Code == http.StatusGone {
		return errForgotten
	}
	return fmt.Errorf("the server answered %d: %s", status.Code, status.Message)
}

// line is what both ways print of a pod.
func line(what, key, phase, node string) string {
	text := fmt.Sprintf("%-8s %-40s %s", what, key, phase)
	if node != "" {
		text += " on " + node
	}
	return text
}
