package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
)

// Handler answers what the API server asks of its nodes, by the paths of the kubelet:
// logs, commands and terminals of containers, and ports of pods. It asks nobody for a
// name or a password: who serves it sees to it that only the API server reaches it.
// Commands and ports take over their connection, so that HTTP/1.1 is needed for them;
// they end with [Agent.Run].
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", a.serveLog)
	for _, method := range []string{"GET ", "POST "} {
		mux.HandleFunc(method+"/exec/{namespace}/{pod}/{container}", a.serveExec)
		mux.HandleFunc(method+"/attach/{namespace}/{pod}/{container}", a.serveAttach)
		mux.HandleFunc(method+"/portForward/{namespace}/{pod}", a.servePorts)
	}
	return mux
}

func (a *Agent) serveLog(w http.ResponseWriter, r *http.Request) {
	key := client.Key{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	if err := a.sendLog(r.Context(), w, key, r.PathValue("container"), r.URL.Query()); err != nil {
		refuse(w, err) // too late if the log has begun
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case client.IsNotFound(err), errors.Is(err, ErrUnknownPod):
		code = http.StatusNotFound
	case errors.Is(err, errBadRequest), errors.Is(err, ErrNoLog), errors.Is(err, errNotRunning):
		code = http.StatusBadRequest
	case errors.Is(err, errNoLogs), errors.Is(err, errNotInteractive):
		code = http.StatusNotImplemented
	case errors.Is(err, errEnds):
		code = http.StatusServiceUnavailable
	}
	http.Error(w, err.Error(), code)
}

var (
	errBadRequest = errors.New("bad request")
	errNoLogs     = errors.New("has no logs")
)

// sendLog writes the log of a container of one of the agent's pods.
func (a *Agent) sendLog(ctx context.Context, w http.ResponseWriter, key client.Key, container string, query url.Values) error {
	o, err := logOptions(query)
	if err != nil {
		return err
	}
	pod, err := a.pods.Get(ctx, key)
	if err != nil {
		return err
	}
	logs, ok := a.runtime.(LogReader)
	if !ok {
		return &refusal{errNoLogs, fmt.Sprintf("the runtime %s of node %s has no logs", a.runtime.Name(), pod.Spec.NodeName)}
	}
	if err := readable(pod, container, o.Previous); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain")
	return logs.Logs(ctx, idOf(pod), container, o, flusher{w, http.NewResponseController(w)})
}

// refusal is an error with a text of its own.
type refusal struct {
	error
	text string
}

func (c *refusal) Error() string { return c.text }
func (c *refusal) Unwrap() error { return c.error }

// readable says why there is no log of a container, as people know it.
func readable(pod *corev1.Pod, container string, previous bool) error {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == container })
	refuse := func(format string, args ...any) error { return &refusal{errBadRequest, fmt.Sprintf(format, args...)} }
	switch {
	case i < 0:
		return refuse("container %q in pod %q is not available", container, pod.Name)
	case previous && all[i].LastTerminationState.Terminated == nil:
		return refuse("previous terminated container %q in pod %q not found", container, pod.Name)
	case all[i].State.Waiting != nil && all[i].LastTerminationState.Terminated == nil:
		return refuse("container %q in pod %q is waiting to start: %s", container, pod.Name, all[i].State.Waiting.Reason)
	}
	return nil
}

// logOptions reads what is wanted of a log.
func logOptions(q url.Values) (LogOptions, error) {
	o := LogOptions{Tail: -1}
	var err error
	number := func(name string, least int64, set func(int64)) {
		v := q.Get(name)
		if v == "" || err != nil {
			return
		}
		n, bad := strconv.ParseInt(v, 10, 64)
		if bad != nil || n < least {
			err = &refusal{errBadRequest, fmt.Sprintf("%s: %q is not a number from %d on", name, v, least)}
			return
		}
		set(n)
	}
	number("tailLines", 0, func(n int64) { o.Tail = n })
	number("limitBytes", 1, func(n int64) { o.Limit = n })
	number("sinceSeconds", 1, func(n int64) { o.Since = time.Now().Add(-time.Duration(n) * time.Second) })
	if v := q.Get("sinceTime"); v != "" && err == nil {
		if o.Since, err = time.Parse(time.RFC3339Nano, v); err != nil {
			err = &refusal{errBadRequest, fmt.Sprintf("sinceTime: %v", err)}
		}
	}
	o.Follow, o.Previous, o.Timestamps = truth(q, "follow"), truth(q, "previous"), truth(q, "timestamps")
	if v := q.Get("stream"); v != "" && v != corev1.LogStreamAll {
		o.Stream = strings.ToLower(v)
	}
	return o, err
}

func truth(q url.Values, name string) bool {
	is, err := strconv.ParseBool(q.Get(name))
	return err == nil && is
}

// flusher sends on at once what is written to it.
type flusher struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}
