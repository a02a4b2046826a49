// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/ratelimit"
)

const (
	maxQueued = 10_000
	// maxRetryTime is as long as API servers keep events.
	maxRetryTime = time.Hour
	// requestTimeout includes client-go's retries.
	requestTimeout = 10 * time.Second
	// stopTimeout starts after the workers have ended, which may take 10 s without an API server. A
	// pod has 30 s.
	stopTimeout        = 5 * time.Second
	retryDelay         = time.Second
	shutdownRetryDelay = 200 * time.Millisecond
)

// EventAPI writes events to the API server.
type EventAPI interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, patch []byte) (*corev1.Event, error)
}

// EventQueue writes events one at a time. client-go's recorder would drop events beyond 25 and aggregate
// after 10 in 10 minutes. Safe for concurrent use.
type EventQueue struct {
	scheme     *runtime.Scheme
	api        EventAPI
	correlator *record.EventCorrelator
	log        *slog.Logger
	added      chan struct{} // capacity 1

	mu sync.Mutex // guards the fields below
	// waiting events are written in turns of namespaces: turns are the namespaces with one, the next first.
	waiting      map[string][]queuedEvent
	turns        []string
	waitingCount int
	// failed events are retried after the waiting ones.
	failed  []queuedEvent
	dropped int
	// named is the time in the last name. It makes the names of two events of one instant differ.
	named int64
}

type queuedEvent struct {
	*corev1.Event
	// number is higher than those of earlier events.
	number int64
	// correlated is nil before the first attempt.
	correlated *record.EventCorrelateResult
}

// NewEventQueue returns a Queue. It writes nothing before Run.
func NewEventQueue(scheme *runtime.Scheme, api EventAPI, log *slog.Logger) *EventQueue {
	return &EventQueue{
		scheme: scheme, api: api, log: log, added: make(chan struct{}, 1), waiting: map[string][]queuedEvent{},
		// The correlator only counts repeated events.
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			BurstSize: math.MaxInt32, QPS: math.MaxInt32, MaxEvents: math.MaxInt32,
			// One group per message disables aggregation.
			KeyFunc: func(e *corev1.Event) (group, within string) {
				group, within = record.EventAggregatorByReasonFunc(e)
				return group + within, within
			},
		}),
	}
}

// Add does not block.
func (q *EventQueue) Add(about runtime.Object, kind, reason, message string) {
	ref, err := reference.GetReference(q.scheme, about)
	if err != nil {
		q.log.Error("no event", "reason", reason, "err", err)
		return
	}
	now, message := metav1.Now(), humanize.WithoutRetryDetails(message)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(ref.Namespace, metav1.NamespaceDefault), // events about cluster-scoped objects
		},
		InvolvedObject: *ref, Reason: reason, Message: message, Type: kind,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: FieldOwner}, ReportingController: FieldOwner,
	}
	q.mu.Lock()
	q.named = max(now.UnixNano(), q.named+1)
	event.Name = fmt.Sprintf("%.200s.%x", ref.Name, q.named)
	if q.waitingCount+len(q.failed) >= maxQueued {
		q.dropOneLocked()
	}
	q.addWaitingLocked(queuedEvent{Event: event, number: q.named})
	q.mu.Unlock()
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// nextEvent returns new events before failed ones.
func (q *EventQueue) nextEvent() (queuedEvent, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dropped > 0 {
		q.log.Warn("events were dropped: the API server did not take them in time", "events", q.dropped)
		q.dropped = 0
	}
	if len(q.turns) > 0 {
		namespace := q.turns[0]
		q.turns = q.turns[1:]
		event := q.takeOldestLocked(namespace)
		if len(q.waiting[namespace]) > 0 {
			q.turns = append(q.turns, namespace)
		}
		return event, true
	}
	if len(q.failed) == 0 {
		return queuedEvent{}, false
	}
	event := q.failed[0]
	q.failed = q.failed[1:]
	return event, true
}

func (q *EventQueue) addWaitingLocked(event queuedEvent) {
	namespace := event.Namespace
	if len(q.waiting[namespace]) == 0 {
		q.turns = append(q.turns, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], event)
	q.waitingCount++
}

// takeOldestLocked removes the oldest waiting event of a namespace that has one. It does not change turns.
func (q *EventQueue) takeOldestLocked(namespace string) queuedEvent {
	events := q.waiting[namespace]
	q.waitingCount--
	if q.waiting[namespace] = events[1:]; len(events) == 1 {
		delete(q.waiting, namespace)
	}
	return events[0]
}

// dropOneLocked drops the oldest failed event, or else the oldest of the namespace with the most: one namespace must not
// drop the events of another.
func (q *EventQueue) dropOneLocked() {
	q.dropped++
	if len(q.failed) > 0 {
		q.failed = q.failed[1:]
		return
	}
	most := q.turns[0]
	for _, namespace := range q.turns {
		if len(q.waiting[namespace]) > len(q.waiting[most]) {
			most = namespace
		}
	}
	q.takeOldestLocked(most)
	if len(q.waiting[most]) == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(namespace string) bool { return namespace == most })
	}
}

// Run writes events until ctx is done, then the remaining ones for at most stopTimeout.
func (q *EventQueue) Run(ctx context.Context) {
	writeCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, end) })
	defer stop()
	for writeCtx.Err() == nil {
		if event, ok := q.nextEvent(); ok {
			if q.writeEvent(writeCtx, &event) {
				q.dropOlder(event)
				continue
			}
			q.requeueFailed(event)
			if ctx.Err() != nil {
				_ = ratelimit.Sleep(writeCtx, shutdownRetryDelay)
			} else {
				_ = ratelimit.Sleep(ctx, retryDelay)
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case <-q.added:
		case <-ctx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.waitingCount + len(q.failed); n > 0 {
		q.log.Warn("events are lost: the controller stops, and the API server did not take them in time", "events", n)
	}
}

func (q *EventQueue) requeueFailed(event queuedEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = append(q.failed, event)
}

// dropOlder drops older versions of a written event, which would reset its count.
func (q *EventQueue) dropOlder(written queuedEvent) {
	if written.correlated == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = slices.DeleteFunc(q.failed, func(e queuedEvent) bool {
		return e.correlated.Event.Name == written.correlated.Event.Name && e.correlated.Event.Count < written.correlated.Event.Count
	})
}

// QueuedEvents returns the events not attempted yet, the oldest first.
func (q *EventQueue) QueuedEvents() []*corev1.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := slices.SortedFunc(func(yield func(queuedEvent) bool) {
		for _, events := range q.waiting {
			for _, e := range events {
				if !yield(e) {
					return
				}
			}
		}
	}, func(a, b queuedEvent) int { return cmp.Compare(a.number, b.number) })
	items := make([]*corev1.Event, len(queued))
	for i, e := range queued {
		items[i] = e.Event
	}
	return items
}
