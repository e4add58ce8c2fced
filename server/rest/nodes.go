package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Nodes finds the agent of a node: the address of its API, and what reaches it and
// proves that this server asks. It does no I/O. The transport speaks HTTP/1.1 at least
// when a request asks for an upgrade, and gives the body of its answer to be written,
// as [http.Transport] does.
type Nodes func(node *corev1.Node) (*url.URL, http.RoundTripper, error)

// maxComplaint is how much of an agent's refusal is told.
const maxComplaint = 10 << 10

// log answers with the log of a container, which the agent of its node has.
func (c *call) log(pod *corev1.Pod) error {
	container, err := containerOf(pod, c.query.Get("container"))
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" { // nothing was said yet
		c.w.Header().Set("Content-Type", "text/plain")
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	query := url.Values{}
	for _, name := range []string{"follow", "previous", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "timestamps", "stream"} {
		if v, given := c.query[name]; given {
			query[name] = v
		}
	}
	res, err := c.askNode(pod, "/"+path.Join("containerLogs", pod.Namespace, pod.Name, container), query, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return c.complaint(res)
	}
	c.w.Header().Set("Content-Type", "text/plain")
	c.w.WriteHeader(http.StatusOK)
	return c.relay(res.Body)
}

// complaint is what an agent says that does not do what it is asked.
func (c *call) complaint(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxComplaint))
	why := strings.TrimSpace(string(text))
	switch {
	case res.StatusCode < http.StatusInternalServerError:
		return apierrors.NewBadRequest(why)
	case res.StatusCode == http.StatusNotImplemented:
		return notImplemented(why)
	}
	return apierrors.NewInternalError(errors.New(why))
}

func notImplemented(why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Message: why}}
}

// containerOf is the container that is meant: the one of that name or, without a
// name, the only one.
func containerOf(pod *corev1.Pod, name string) (string, error) {
	var all, first []string
	for _, ctr := range pod.Spec.Containers {
		all = append(all, ctr.Name)
	}
	for _, ctr := range pod.Spec.InitContainers {
		first = append(first, ctr.Name)
	}
	known := slices.Concat(all, first)
	for _, ctr := range pod.Spec.EphemeralContainers {
		known = append(known, ctr.Name)
	}
	switch {
	case name == "" && len(all) == 1:
		return all[0], nil
	case name == "" && len(first) > 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s or one of the init containers: %s", pod.Name, all, first))
	case name == "":
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", pod.Name, all))
	case !slices.Contains(known, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	}
	return name, nil
}

// askNode sends a request to the agent of a pod's node, with these headers only: what
// the client proved its identity with does not go along.
func (c *call) askNode(pod *corev1.Pod, path string, query url.Values, header http.Header) (*http.Response, error) {
	if c.api.nodes == nil {
		return nil, c.noAgent()
	}
	nodes := c.api.registry.stored("", "nodes")
	stored := nodes.objects.Get("", pod.Spec.NodeName)
	if stored == nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("node %q of pod %s is not registered", pod.Spec.NodeName, pod.Name))
	}
	obj, err := nodes.decoded(stored)
	if err != nil {
		return nil, err
	}
	to, through, err := c.api.nodes(obj.(*corev1.Node))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	target := *to
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(c.ctx(), c.r.Method, target.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	res, err := through.RoundTrip(req)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("ask node %q: %w", pod.Spec.NodeName, err))
	}
	return res, nil
}

// relay sends on what an agent answers, as it comes. When it ends early, so does the
// answer: there is nobody left to tell.
func (c *call) relay(from io.Reader) error {
	control, buf := http.NewResponseController(c.w), make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := c.w.Write(buf[:n]); err != nil {
				return nil
			}
			if err := control.Flush(); err != nil {
				return nil
			}
		}
		if err != nil {
			return nil
		}
	}
}
