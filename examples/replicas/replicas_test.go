package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/examples/internal/cluster"
	"github.com/even-keel/evenkeel/examples/internal/program"
	"github.com/even-keel/evenkeel/manager"
)

// scene is a server at which the controller is at work.
type scene struct {
	*testing.T
	log         *program.Transcript
	deployments *client.Client[*appsv1.Deployment]
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// deploy makes a Deployment of a size, with an annotation.
func (s *scene) deploy(name string, replicas int32, least string) {
	s.Helper()
	labels := map[string]string{"app": name}
	_, err := s.deployments.Create(s.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{annotation: least}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
			},
		},
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) patch(name string, change map[string]any) {
	s.Helper()
	if _, err := s.deployments.Patch(s.Context(), key(name), client.MergePatch(change)); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) scale(name string, replicas int) {
	s.Helper()
	s.patch(name, map[string]any{"spec": map[string]any{"replicas": replicas}})
}

// mustHave waits for a size.
func (s *scene) mustHave(name string, replicas int32) {
	s.Helper()
	cluster.Eventually(s.T, s.deployments, key(name), func(d *appsv1.Deployment) error {
		switch {
		case d == nil:
			return errors.New("there is none")
		case *d.Spec.Replicas != replicas:
			return fmt.Errorf("%d replicas", *d.Spec.Replicas)
		}
		return nil
	})
}

func TestReplicas(t *testing.T) {
	cluster.Each(t, func(t *testing.T, c *cluster.Cluster) {
		p := program.Run(t, func(ctx context.Context, p *program.Program) error {
			mgr, err := manager.New(manager.Options{Config: c.Config, Logger: slog.New(slog.NewTextHandler(&p.Err, nil))})
			if err != nil {
				return err
			}
			mgr.Add(newController(mgr))
			return mgr.Run(ctx)
		})
		s := &scene{t, &p.Err, client.Of[*appsv1.Deployment](c.Conn)}
		s.deploy("web", 1, "3")
		s.mustHave("web", 3)
		cluster.Recorded(t, c.Conn, key("web"), "Normal ScaledUp from 1 to 3 replicas")
		s.scale("web", 5)
		s.patch("web", map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: "2"}}})
		s.deploy("other", 1, "2")
		s.mustHave("other", 2)
		s.mustHave("web", 5) // more than the least is others' to say
		s.scale("web", 0)
		s.mustHave("web", 2)

		s.deploy("typo", 1, "two")
		cluster.Recorded(t, c.Conn, key("typo"), `Warning BadAnnotation `+annotation+`: strconv.ParseInt: parsing "two": invalid syntax`)
		s.log.Expect(t, `msg="failed, and is not tried again" controller=replicas key=default/typo`)
		s.patch("typo", map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: "2"}}})
		s.mustHave("typo", 2)
	})
}

// The README shows the program as it is.
func TestTheReadmeShowsAllOfIt(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "\n```go\n"+string(program)+"```\n") {
		t.Error("README.md does not show examples/replicas/main.go as it is")
	}
	if lines := strings.Count(string(program), "\n"); lines >= 60 {
		t.Errorf("it has %d lines; the README says that they are fewer than 60", lines)
	}
}
