package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
)

// fetcher reads what pods take from elsewhere.
type fetcher struct {
	configMaps *client.Client[*corev1.ConfigMap]
	secrets    *client.Client[*corev1.Secret]
	tokens     *client.Subresource[*authenticationv1.TokenRequest]
}

func newFetcher(s client.Source) fetcher {
	return fetcher{
		configMaps: client.Of[*corev1.ConfigMap](s), secrets: client.Of[*corev1.Secret](s),
		tokens: client.Sub[*authenticationv1.TokenRequest](client.Of[*corev1.ServiceAccount](s), "token"),
	}
}

// configMap returns the contents of a config map, nil if it is not there and need
// not be.
func (f fetcher) configMap(ctx context.Context, namespace, name string, optional *bool) (map[string][]byte, error) {
	m, err := f.configMaps.Get(ctx, client.Key{Namespace: namespace, Name: name})
	if err != nil {
		return nil, missing(err, fmt.Sprintf("configmap %q not found", name), optional)
	}
	out := maps.Clone(m.BinaryData)
	for k, v := range m.Data {
		setIn(&out, k, []byte(v))
	}
	return out, nil
}

func (f fetcher) secret(ctx context.Context, namespace, name string, optional *bool) (map[string][]byte, error) {
	s, err := f.secrets.Get(ctx, client.Key{Namespace: namespace, Name: name})
	if err != nil {
		return nil, missing(err, fmt.Sprintf("secret %q not found", name), optional)
	}
	return s.Data, nil
}

// missing makes of the error of a read what it means for a container.
func missing(err error, text string, optional *bool) error {
	switch {
	case !client.IsNotFound(err):
		return err
	case optional != nil && *optional:
		return nil
	}
	return &Failure{ReasonConfig, text}
}

// container puts into a container what it takes from elsewhere.
func (a *Agent) container(ctx context.Context, pod *corev1.Pod, s starting) (Container, error) {
	e := environment{fetch: a.fetch, pod: pod, facts: a.facts(pod), values: map[string]string{}}
	spec := s.slot.spec
	if err := e.fill(ctx, spec); err != nil {
		return Container{}, err
	}
	c := Container{Spec: spec, Attempt: s.attempt}
	for _, name := range e.order {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: e.values[name]})
	}
	for _, word := range spec.Command {
		c.Command = append(c.Command, expand(word, e.values))
	}
	for _, word := range spec.Args {
		c.Args = append(c.Args, expand(word, e.values))
	}
	return c, nil
}

// environment is that of a container, in the making.
type environment struct {
	fetch  fetcher
	pod    *corev1.Pod
	facts  facts
	values map[string]string
	order  []string
}

func (e *environment) set(name, value string) {
	if _, there := e.values[name]; !there {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

func (e *environment) fill(ctx context.Context, c *corev1.Container) error {
	for _, from := range c.EnvFrom {
		if err := e.fillFrom(ctx, from); err != nil {
			return err
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			e.set(v.Name, expand(v.Value, e.values))
			continue
		}
		value, there, err := e.valueFrom(ctx, c, v.ValueFrom)
		if err != nil {
			return err
		}
		if there {
			e.set(v.Name, value)
		}
	}
	return nil
}

func (e *environment) fillFrom(ctx context.Context, from corev1.EnvFromSource) error {
	var data map[string][]byte
	var err error
	switch {
	case from.ConfigMapRef != nil:
		data, err = e.fetch.configMap(ctx, e.pod.Namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		data, err = e.fetch.secret(ctx, e.pod.Namespace, from.SecretRef.Name, from.SecretRef.Optional)
	}
	for _, k := range slices.Sorted(maps.Keys(data)) {
		e.set(from.Prefix+k, string(data[k]))
	}
	return err
}

// valueFrom reads a value, and reports whether there is one.
func (e *environment) valueFrom(ctx context.Context, c *corev1.Container, from *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case from.ConfigMapKeyRef != nil:
		r := from.ConfigMapKeyRef
		data, err := e.fetch.configMap(ctx, e.pod.Namespace, r.Name, r.Optional)
		return e.pick(data, err, "ConfigMap", r.Name, r.Key, r.Optional)
	case from.SecretKeyRef != nil:
		r := from.SecretKeyRef
		data, err := e.fetch.secret(ctx, e.pod.Namespace, r.Name, r.Optional)
		return e.pick(data, err, "Secret", r.Name, r.Key, r.Optional)
	case from.FieldRef != nil:
		v, err := e.facts.field(e.pod, from.FieldRef.FieldPath)
		return v, true, err
	case from.ResourceFieldRef != nil:
		v, err := e.facts.resource(e.pod, c, from.ResourceFieldRef)
		return v, true, err
	}
	return "", false, &Failure{ReasonConfig, "the source of an environment variable is of a kind that this node agent does not know"}
}

func (e *environment) pick(data map[string][]byte, err error, kind, name, key string, optional *bool) (string, bool, error) {
	if err != nil {
		return "", false, err
	}
	v, there := data[key]
	if !there && (optional == nil || !*optional) {
		return "", false, &Failure{ReasonConfig, fmt.Sprintf("couldn't find key %s in %s %s/%s", key, kind, e.pod.Namespace, name)}
	}
	return string(v), there, nil
}

// expand puts variables into a text: $(NAME) is the value of one that is known, and
// stays as it is otherwise; $$ is one $.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		value, known := values[name]
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && closed && known:
			out.WriteString(value)
			text = after
		case strings.HasPrefix(rest, "(") && closed:
			out.WriteString("$(" + name + ")")
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}
