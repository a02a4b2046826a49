// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"weir.dev/weir/internal/lead"
)

const (
	// eventsKept bounds the events that wait for the API server, a few megabytes.
	eventsKept = 10_000
	// triedFor is for how long an event is tried that the API server has no use for: an
	// API server keeps none longer.
	triedFor = time.Hour
	// eventDeadline bounds one request. client-go asks again within it.
	eventDeadline = 10 * time.Second
	// eventsStopWithin bounds how long the last events may take when the controller stops,
	// counted from the end of the lanes. These may need 10 s, if the API server does not
	// answer: for the resource lease, which they acquire or release. The leader's lease is
	// released after both, and a pod has 30 s in all.
	eventsStopWithin = 5 * time.Second
	// eventPause is the pause after a try that failed.
	eventPause = time.Second
	// lastPause is the pause after a try that failed when the controller stops.
	lastPause = 200 * time.Millisecond
)

// eventAPI is the API server as far as events are concerned.
type eventAPI interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, patch []byte) (*corev1.Event, error)
}

// eventQueue writes events one after the other. client-go's own recorder drops what comes
// while 25 wait, and sums up after 10 in 10 minutes, but every failed attempt is an event.
type eventQueue struct {
	scheme     *runtime.Scheme
	api        eventAPI
	correlator *record.EventCorrelator
	log        *slog.Logger
	wake       chan struct{} // has room for one token

	mu      sync.Mutex // guards all below
	waiting []queuedEvent
	// failed are those that a try has failed for. They stand back behind the others: what
	// failed may fail for them alone.
	failed  []queuedEvent
	dropped int
}

// queuedEvent is an event that waits.
type queuedEvent struct {
	*corev1.Event
	// seen is what the correlator made of it, once it was asked.
	seen *record.EventCorrelateResult
}

func newEventQueue(scheme *runtime.Scheme, api eventAPI, log *slog.Logger) *eventQueue {
	return &eventQueue{
		scheme: scheme, api: api, log: log, wake: make(chan struct{}, 1),
		// What is left of the correlator: the same again is counted, not written anew.
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			BurstSize: math.MaxInt32, QPS: math.MaxInt32, MaxEvents: math.MaxInt32,
			// Each message is a group of its own, so that no group grows.
			KeyFunc: func(e *corev1.Event) (group, within string) {
				group, within = record.EventAggregatorByReasonFunc(e)
				return group + within, within
			},
		}),
	}
}

// add queues an event about an object. It waits for nothing.
func (q *eventQueue) add(about runtime.Object, kind, reason, message string) {
	ref, err := reference.GetReference(q.scheme, about)
	if err != nil { // not a kind of the scheme
		q.log.Error("no event", "reason", reason, "err", err)
		return
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%.200s.%x", ref.Name, now.UnixNano()),
			Namespace: either(ref.Namespace, metav1.NamespaceDefault), // that of events about nodes
		},
		InvolvedObject: *ref, Reason: reason, Message: message, Type: kind,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: fieldOwner}, ReportingController: fieldOwner,
	}
	q.mu.Lock()
	if len(q.waiting)+len(q.failed) >= eventsKept {
		oldest := &q.waiting
		if len(q.failed) > 0 {
			oldest = &q.failed
		}
		*oldest = (*oldest)[1:]
		q.dropped++
	}
	q.waiting = append(q.waiting, queuedEvent{Event: event})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next takes the oldest event, of those that no try has failed for if there are such;
// false if none waits.
func (q *eventQueue) next() (queuedEvent, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped > 0 {
		q.log.Warn("events were dropped: the API server did not take them in time", "events", q.dropped)
		q.dropped = 0
	}
	from := &q.waiting
	if len(q.waiting) == 0 {
		from = &q.failed
	}
	if len(*from) == 0 {
		return queuedEvent{}, false
	}
	event := (*from)[0]
	*from = (*from)[1:]
	return event, true
}

// run writes events until the context is done, and then those that still wait, as long
// as it may.
func (q *eventQueue) run(ctx context.Context) {
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(eventsStopWithin, end) })
	defer stop()
	for ending.Err() == nil {
		if event, waits := q.next(); waits {
			if q.write(ending, &event) {
				q.forgets(event)
				continue
			}
			q.again(event)
			if ctx.Err() != nil {
				pause(ending, lastPause)
			} else {
				pause(ctx, eventPause)
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.waiting) + len(q.failed); n > 0 {
		q.log.Warn("events are lost: the controller stops, and the API server did not take them in time", "events", n)
	}
}

// write tries once to write an event, and reports whether the API server has taken it, or
// refuses it for good.
func (q *eventQueue) write(ctx context.Context, event *queuedEvent) (done bool) {
	if event.seen == nil {
		seen, err := q.correlator.EventCorrelate(event.Event)
		if err != nil {
			q.log.Error("no event", "reason", event.Reason, "err", err)
			return true
		}
		event.seen = seen
	}
	err := q.writeOnce(ctx, event.seen.Event, event.seen.Patch)
	if errors.Is(err, lead.ErrNotLeading) {
		return true // what this process knows is for others to say now
	}
	if err != nil && passes(err) && (!answered(err) || time.Since(event.FirstTimestamp.Time) <= triedFor) {
		q.log.Debug("event not written, trying again", "reason", event.Reason, "err", err)
		return false
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true // nobody is left to read it
	}
	if err != nil {
		q.log.Warn("event refused", "object", event.InvolvedObject.Kind+" "+key(event.InvolvedObject.Namespace, event.InvolvedObject.Name),
			"reason", event.Reason, "err", err)
	}
	return true
}

// pause waits, or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// again puts an event behind all that wait.
func (q *eventQueue) again(event queuedEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = append(q.failed, event)
}

// forgets drops what failed before an event that counts on from it: written later, it
// would put the count back.
func (q *eventQueue) forgets(told queuedEvent) {
	if told.seen == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = slices.DeleteFunc(q.failed, func(e queuedEvent) bool {
		return e.seen.Event.Name == told.seen.Event.Name && e.seen.Event.Count < told.seen.Event.Count
	})
}

// writeOnce counts an event that was written before, or writes it.
func (q *eventQueue) writeOnce(ctx context.Context, event *corev1.Event, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, eventDeadline)
	defer cancel()
	var written *corev1.Event
	var err error
	again := event.Count > 1
	if again {
		written, err = q.api.PatchWithEventNamespaceWithContext(ctx, event, patch)
	}
	if !again || apierrors.IsNotFound(err) { // it has expired
		event.ResourceVersion = ""
		written, err = q.api.CreateWithEventNamespaceWithContext(ctx, event)
	}
	if apierrors.IsAlreadyExists(err) { // an earlier try of ours has arrived
		return nil
	}
	if err == nil {
		q.correlator.UpdateState(written)
	}
	return err
}

// answered reports whether an error is an answer of the API server.
func answered(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

// passes reports whether an error of the API server may pass by itself: no answer, a
// server that is busy, and one that is broken.
func passes(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return true
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
