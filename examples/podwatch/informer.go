package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

// maxRetries is how often a pod is tried again before it is dropped.
const maxRetries = 5

// podWorker works on pods, one key at a time.
type podWorker struct {
	pods  *informer.Informer[*corev1.Pod]
	queue *workqueue.Queue[client.Key]
	fail  string
	log   *slog.Logger

	mu   sync.Mutex // lines are whole
	out  io.Writer
	seen map[client.Key]bool
}

// informed runs an informer, whose handler does nothing but queue keys, and workers,
// which look at the newest state of a key in the informer's cache.
func informed(ctx context.Context, cfg *rest.Config, o options, out io.Writer, log *slog.Logger) error {
	conn, err := client.Connect(cfg)
	if err != nil {
		return err
	}
	if _, err := conn.Get(ctx, "/version"); err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	set := informer.NewSet(conn, informer.Config{OnError: func(f informer.Failure) {
		log.Warn("the watch failed", "kind", f.Kind, "error", f.Err, "again in", f.Wait)
	}})
	w := &podWorker{
		pods: informer.For[*corev1.Pod](set, informer.InNamespace(o.namespace)),
		queue: workqueue.New(workqueue.Options[client.Key]{
			MaxRetries: maxRetries,
			Backoff:    workqueue.Exponential(o.backoff, time.Minute),
			Group:      func(k client.Key) string { return k.Namespace }, // namespaces take turns
		}),
		fail: o.fail, log: log, out: out, seen: map[client.Key]bool{},
	}
	w.pods.HandleWith(informer.HandlerOptions[*corev1.Pod]{SkipUnchanged: true}, w.changed)

	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() { w.work(ctx) })
	}
	err = set.Run(ctx) // until ctx ends
	w.queue.ShutDown()
	workers.Wait()
	return err
}

// changed queues the key of a pod, and why.
func (w *podWorker) changed(d informer.Delta[*corev1.Pod]) {
	w.queue.Add(d.Key, workqueue.Cause{
		Reason: workqueue.Event, Kind: "Pod", Object: d.Key.String(), Old: string(d.OldRevision()), New: string(d.Revision()),
	})
}

// work is one worker. It tries a key five times again, after ever longer pauses.
func (w *podWorker) work(ctx context.Context) {
	for item := range w.queue.Items(ctx) {
		err := w.reconcile(item.Key)
		if err == nil {
			w.queue.Forget(item.Key)
			continue
		}
		switch again := w.queue.Retry(item.Key); {
		case again == nil:
			w.log.Warn("trying again", "pod", item.Key, "retry", item.Retries+1, "of", maxRetries, "error", err)
		case errors.Is(again, workqueue.ErrRetryLimit):
			w.log.Error("dropped", "pod", item.Key, "retries", item.Retries, "error", err, "causes", reasons(item.Causes))
		}
	}
}

func reasons(causes []workqueue.Cause) string {
	var out []string
	for _, c := range causes {
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

// reconcile brings the world in line with a pod: here, it prints it.
func (w *podWorker) reconcile(key client.Key) error {
	pod, exists := w.pods.Get(key.Namespace, key.Name)
	if exists && pod.Name == w.fail {
		return errors.New("told to fail by --fail")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !exists && !w.seen[key]: // it came and went before anybody looked
	case !exists:
		delete(w.seen, key)
		fmt.Fprintln(w.out, line("deleted", key.String(), "", ""))
	case w.seen[key]:
		fmt.Fprintln(w.out, line("updated", key.String(), string(pod.Status.Phase), pod.Spec.NodeName))
	default:
		w.seen[key] = true
		fmt.Fprintln(w.out, line("added", key.String(), string(pod.Status.Phase), pod.Spec.NodeName))
	}
	return nil
}
