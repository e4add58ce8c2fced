//go:build unix

package process_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/process"
	"github.com/even-keel/evenkeel/node/runtimetest"
)

// The test's own program is the one that containers run, if a variable says so.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		program()
		return
	}
	evenkeeltest.Main(m)
}

func open(t *testing.T, folder string) *process.Runtime {
	t.Helper()
	r, err := process.Open(process.Options{Folder: folder, Address: "127.0.0.1", LogBytes: 4096, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRuntime(t *testing.T) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Subject {
		r := open(t, t.TempDir())
		return runtimetest.Subject{
			Runtime: r, Behave: behave, Interactive: true,
			Probe:  corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "!", "-e", "ill"}}}},
			Settle: func(id node.PodID, container string) { waitForLine(t, r, id, container, "ready") },
			Around: func(t *testing.T, test func(*testing.T)) { test(t) },
		}
	})
}

// behave gives a container a command that ends by itself after a minute: a test that
// is killed leaves nothing behind for longer.
func behave(_ *corev1.Pod, c *corev1.Container, b runtimetest.Behaviour) {
	script := "echo ready; exec sleep 60"
	switch {
	case b.Impossible:
		c.Command = []string{"evenkeel-no-such-command"}
		return
	case b.Deaf:
		script = `trap "" TERM; echo ready; for i in $(seq 60); do sleep 1; done`
	case b.Unhealthy:
		script = "touch ill; " + script
	case b.ExitCode >= 0:
		script = fmt.Sprintf("echo ready; exit %d", b.ExitCode)
	}
	c.Command = []string{"sh", "-c", script}
}

// awaiting is a writer that ends a context when a line was written.
type awaiting struct {
	text strings.Builder
	line string
	seen func()
}

func (a *awaiting) Write(p []byte) (int, error) {
	n, err := a.text.Write(p)
	if strings.Contains(a.text.String(), a.line+"\n") {
		a.seen()
	}
	return n, err
}

// waitForLine waits until a container has written a line, and returns its log.
func waitForLine(t *testing.T, r *process.Runtime, id node.PodID, container, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a := &awaiting{line: line, seen: cancel}
	if err := r.Logs(ctx, id, container, node.LogOptions{Follow: true, Tail: -1}, a); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(a.text.String(), line+"\n") {
		t.Fatalf("it did not write %q: %s", line, a.text.String())
	}
	return a.text.String()
}

// stage is a runtime that runs, with one pod.
type stage struct {
	*process.Runtime
	t  *testing.T
	id node.PodID
}

func begin(t *testing.T, folder string, volumes ...node.Volume) *stage {
	t.Helper()
	s := &stage{Runtime: open(t, folder), t: t}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(node.PodID) {}) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}}
	s.id = node.PodID{Key: client.KeyOf(p), UID: p.UID}
	if err := s.Prepare(t.Context(), node.Pod{ID: s.id, Object: p, Volumes: volumes}); err != nil {
		t.Fatal(err)
	}
	return s
}

// sh starts a container that runs a script.
func (s *stage) sh(attempt int32, script string, change ...func(*node.Container)) {
	s.t.Helper()
	c := node.Container{Spec: &corev1.Container{Name: "app"}, Attempt: attempt, Command: []string{"sh", "-c", script}}
	for _, f := range change {
		f(&c)
	}
	if err := s.Start(s.t.Context(), s.id, c); err != nil {
		s.t.Fatal(err)
	}
}

// logs is the log of the container, when it has ended.
func (s *stage) logs(o node.LogOptions) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	var out strings.Builder
	if err := s.Logs(ctx, s.id, "app", o, &out); err != nil {
		s.t.Fatal(err)
	}
	if ctx.Err() != nil {
		s.t.Fatalf("the log does not end: %s", out.String())
	}
	return out.String()
}

func TestAContainerSeesItsEnvironmentAndVolumes(t *testing.T) {
	host := t.TempDir()
	s := begin(t, t.TempDir(),
		node.Volume{Name: "conf", Source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}, Files: map[string]node.File{
			"a": {Data: []byte("one"), Mode: 0o600}, "sub/b": {Data: []byte("two"), Mode: 0o644},
		}},
		node.Volume{Name: "my-data", Source: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		node.Volume{Name: "host", Source: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}})
	s.sh(0, `cat $EVENKEEL_ROOT/etc/app/a ../etc/app/sub/b b; echo; echo $GREETING $HOSTNAME; echo x >$EVENKEEL_VOLUME_MY_DATA/f; cat ../data/f; echo y >../host/z`,
		func(c *node.Container) {
			c.Env = []corev1.EnvVar{{Name: "GREETING", Value: "ahoy"}}
			c.Spec.WorkingDir = "/work"
			c.Spec.VolumeMounts = []corev1.VolumeMount{
				{Name: "conf", MountPath: "/etc/app"}, {Name: "my-data", MountPath: "/data"}, {Name: "host", MountPath: "/host"},
				{Name: "conf", MountPath: "/work/b", SubPath: "sub/b"},
			}
		})
	if got, want := s.logs(node.LogOptions{Follow: true, Tail: -1}), "onetwotwo\nahoy p\nx\n"; got != want {
		t.Errorf("it wrote %q, want %q", got, want)
	}
	if data, err := os.ReadFile(host + "/z"); err != nil || string(data) != "y\n" {
		t.Errorf("on the machine is %q: %v", data, err)
	}
}

var data = node.Volume{Name: "data", Source: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}

// mounted has a container have that volume at /data.
func mounted(c *node.Container) {
	c.Spec.VolumeMounts = []corev1.VolumeMount{{Name: data.Name, MountPath: "/data"}}
}

func TestARestartBeginsWithNothingButVolumes(t *testing.T) {
	s := begin(t, t.TempDir(), data)
	mounted := func(c *node.Container) {
		c.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	s.sh(0, "echo lost >own; echo kept >data/f; ls", mounted)
	if got := s.logs(node.LogOptions{Follow: true, Tail: -1}); got != "data\nown\n" {
		t.Fatalf("it wrote %q", got)
	}
	s.sh(1, "ls; cat data/f", mounted)
	if got := s.logs(node.LogOptions{Follow: true, Tail: -1}); got != "data\nkept\n" {
		t.Errorf("after a restart, it wrote %q", got)
	}
}

func TestVolumesAreBroughtUpToDate(t *testing.T) {
	conf := func(files map[string]node.File) node.Volume {
		return node.Volume{Name: "conf", Source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}, Files: files}
	}
	folder := t.TempDir()
	s := begin(t, folder, conf(map[string]node.File{"old": {Mode: 0o644}, "both": {Data: []byte("1"), Mode: 0o644}}))
	again := node.Pod{ID: s.id, Object: &corev1.Pod{}, Volumes: []node.Volume{conf(map[string]node.File{"new": {Mode: 0o644}, "both": {Data: []byte("2"), Mode: 0o644}})}}
	if err := s.Prepare(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	s.sh(0, "ls $EVENKEEL_VOLUME_CONF; cat $EVENKEEL_VOLUME_CONF/both", func(c *node.Container) {
		c.Spec.VolumeMounts = []corev1.VolumeMount{{Name: "conf", MountPath: "/c"}}
	})
	if got, want := s.logs(node.LogOptions{Follow: true, Tail: -1}), "both\nnew\n2"; got != want {
		t.Errorf("it wrote %q, want %q", got, want)
	}
}

func TestLogs(t *testing.T) {
	s := begin(t, t.TempDir())
	s.sh(0, "echo before")
	s.logs(node.LogOptions{Follow: true, Tail: -1})
	s.sh(1, "echo one; echo two >&2; sleep 0.01; printf three")
	all := s.logs(node.LogOptions{Follow: true, Tail: -1})
	if strings.Count(all, "\n") != 2 || !strings.Contains(all, "one\n") || !strings.Contains(all, "two\n") || !strings.HasSuffix(all, "three") {
		t.Errorf("it wrote %q", all)
	}
	for name, test := range map[string]struct {
		options node.LogOptions
		want    string
	}{
		"the previous":    {node.LogOptions{Previous: true, Tail: -1}, "before\n"},
		"one stream":      {node.LogOptions{Stream: "stderr", Tail: -1}, "two\n"},
		"the last line":   {node.LogOptions{Tail: 1}, "three"},
		"no line":         {node.LogOptions{}, ""},
		"some bytes":      {node.LogOptions{Tail: -1, Stream: "stdout", Limit: 5}, "one\nt"},
		"from now on":     {node.LogOptions{Tail: -1, Since: time.Now().Add(time.Minute)}, ""},
		"since yesterday": {node.LogOptions{Tail: -1, Since: time.Now().Add(-24 * time.Hour), Stream: "stderr"}, "two\n"},
	} {
		if got := s.logs(test.options); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	line := s.logs(node.LogOptions{Tail: -1, Stream: "stderr", Timestamps: true})
	at, text, _ := strings.Cut(line, " ")
	if when, err := time.Parse(time.RFC3339Nano, at); err != nil || time.Since(when) > time.Minute || text != "two\n" {
		t.Errorf("with its time, it is %q", line)
	}
	err := s.Logs(t.Context(), s.id, "none", node.LogOptions{}, new(strings.Builder))
	if !errors.Is(err, node.ErrNoLog) {
		t.Errorf("the error is %v", err)
	}
}

// A line that is too long is kept in parts, which are one line to who reads it.
func TestALongLineHasOneTime(t *testing.T) {
	s := begin(t, t.TempDir())
	s.sh(0, "head -c 20000 /dev/zero | tr '\\0' x; echo")
	s.logs(node.LogOptions{Follow: true, Tail: -1})
	got := s.logs(node.LogOptions{Tail: -1, Timestamps: true})
	if _, text, _ := strings.Cut(got, " "); text != strings.Repeat("x", 20000)+"\n" {
		t.Errorf("the line has %d bytes: %.60s", len(text), got)
	}
}

func TestAProgramIsFoundByTheContainersPath(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/greet", []byte("#!/bin/sh\necho ahoy $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := begin(t, t.TempDir())
	s.sh(0, "", func(c *node.Container) {
		c.Command, c.Args, c.Env = []string{"greet"}, []string{"you"}, []corev1.EnvVar{{Name: "PATH", Value: "relative:" + folder + ":/bin:/usr/bin"}}
	})
	if got := s.logs(node.LogOptions{Follow: true, Tail: -1}); got != "ahoy you\n" {
		t.Errorf("it wrote %q", got)
	}
}

// What a probe leaves behind does not stay.
func TestAProbesGroupEnds(t *testing.T) {
	s := begin(t, t.TempDir())
	s.sh(0, "echo ready; exec sleep 60")
	waitForLine(t, s.Runtime, s.id, "app", "ready")
	probe := func(script string) error {
		return s.Probe(t.Context(), s.id, "app", node.Probe{Kind: node.Liveness, Spec: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}},
		}}})
	}
	err := probe("sleep 60 >/dev/null 2>&1 & echo $!; exit 1")
	pid, bad := strconv.Atoi(strings.TrimSpace(fmt.Sprint(err)))
	if bad != nil || !errors.Is(err, node.ErrUnhealthy) {
		t.Fatalf("the probe says %v", err)
	}
	until(t, "its child ends", func() bool {
		state, _ := os.ReadFile(fmt.Sprint("/proc/", pid, "/stat"))
		return syscall.Kill(pid, 0) != nil || strings.Contains(string(state), ") Z ") // nobody may have waited for it
	})
}

func TestLogsAreBounded(t *testing.T) {
	folder := t.TempDir()
	s := begin(t, folder)
	s.sh(0, "i=0; while [ $i -lt 500 ]; do echo line $i of a log that is too long; i=$((i+1)); done")
	all := s.logs(node.LogOptions{Follow: true, Tail: -1})
	if !strings.HasSuffix(all, "line 499 of a log that is too long\n") {
		t.Errorf("its end is missing: %q", all[max(0, len(all)-100):])
	}
	size := int64(0)
	for _, f := range []string{"0.log", "0.log.1"} {
		info, err := os.Stat(folder + "/pods/u/containers/app/" + f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 3*4096 {
		t.Errorf("there are %d bytes of it", size)
	}
	if got := s.logs(node.LogOptions{Tail: 2}); got != "line 498 of a log that is too long\nline 499 of a log that is too long\n" {
		t.Errorf("its end is %q", got)
	}
}

func TestAWholeGroupEnds(t *testing.T) {
	s := begin(t, t.TempDir())
	s.sh(0, "sleep 60 & echo $!; exit 3")
	child := strings.TrimSpace(s.logs(node.LogOptions{Follow: true, Tail: -1}))
	pid, err := strconv.Atoi(child)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "its child ends", func() bool {
		state, _ := os.ReadFile("/proc/" + child + "/stat")
		return syscall.Kill(pid, 0) != nil || strings.Contains(string(state), ") Z ") // nobody may have waited for it
	})
}

func TestTheMessageOfAnEnd(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		policy corev1.TerminationMessagePolicy
		want   string
	}{
		"is what it wrote":           {"printf bad luck >$EVENKEEL_TERMINATION_LOG; exit 1", corev1.TerminationMessageReadFile, "bad"},
		"is the log's end, if asked": {"echo no luck; exit 1", corev1.TerminationMessageFallbackToLogsOnError, "no luck\n"},
		"is its last part":           {"head -c 5000 /dev/zero | tr '\\0' x >$EVENKEEL_TERMINATION_LOG; printf end >>$EVENKEEL_TERMINATION_LOG; exit 1", corev1.TerminationMessageReadFile, strings.Repeat("x", 4093) + "end"},
		"is nothing otherwise":       {"echo no luck; exit 1", corev1.TerminationMessageReadFile, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, t.TempDir())
			s.sh(0, test.script, func(c *node.Container) { c.Spec.TerminationMessagePolicy = test.policy })
			s.logs(node.LogOptions{Follow: true, Tail: -1})
			exit := s.exit()
			if exit.Message != test.want || exit.Code != 1 {
				t.Errorf("it is %+v, want %q", exit, test.want)
			}
		})
	}
}

// exit waits until the container has ended: what reads its log may be faster.
func (s *stage) exit() (e *node.Exit) {
	s.t.Helper()
	until(s.t, "it ends", func() bool {
		seen, _ := s.Observe(s.id)
		e = seen.Containers[0].Exit
		return e != nil
	})
	return e
}

// until asks again and again, since the system does not tell.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it is not so that %s", what)
		}
	}
}

func TestHooks(t *testing.T) {
	s := begin(t, t.TempDir(), data)
	run := func(script string) *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}}
	}
	s.sh(0, `trap "echo told; exit 0" TERM; echo ready; for i in $(seq 6000); do sleep 0.01; done`, func(c *node.Container) {
		c.Spec.Lifecycle = &corev1.Lifecycle{PostStart: run("echo started >data/hooks"), PreStop: run("echo stops >>data/hooks")}
	}, mounted)
	waitForLine(t, s.Runtime, s.id, "app", "ready")
	s.Stop(s.id, "app", node.Stop{Grace: 20 * time.Second})
	if exit := s.exit(); exit.Code != 0 {
		t.Errorf("it ended with %+v", exit)
	}
	s.sh(1, "cat data/hooks", mounted)
	if got := s.logs(node.LogOptions{Follow: true, Tail: -1}); got != "started\nstops\n" {
		t.Errorf("its hooks did %q", got)
	}
}

func TestWhatAnAgentLeftIsKilled(t *testing.T) {
	folder := t.TempDir()
	first := begin(t, folder)
	first.sh(0, "echo ready; exec sleep 60")
	waitForLine(t, first.Runtime, first.id, "app", "ready")
	second := open(t, folder) // as if the first had been killed
	if got := second.Pods(); len(got) != 1 || got[0] != first.id {
		t.Errorf("its pods are %v", got)
	}
	if exit := first.exit(); exit.Code != 128+int32(syscall.SIGKILL) {
		t.Errorf("it ended with %+v", exit)
	}
}

func TestAContainerNeedsACommand(t *testing.T) {
	s := begin(t, t.TempDir())
	err := s.Start(t.Context(), s.id, node.Container{Spec: &corev1.Container{Name: "app", Image: "nginx"}})
	failure := new(node.Failure)
	if !errors.As(err, &failure) || failure.Reason != "CreateContainerError" || failure.Message != `the process runtime runs no images: container "app" needs a command` {
		t.Errorf("the error is %v", err)
	}
}
