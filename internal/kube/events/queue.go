// SPDX-License-Identifier: Apache-2.0

package events

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

	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/words"
)

const (
	// mostWaiting bounds the events that wait for the API server, a few megabytes.
	mostWaiting = 10_000
	// triedFor is for how long an event is tried that the API server has no use for: an
	// API server keeps none longer.
	triedFor = time.Hour
	// deadline bounds one request. client-go asks again within it.
	deadline = 10 * time.Second
	// stopWithin bounds how long the last events may take when the controller stops,
	// counted from the end of the lanes. These may need 10 s, if the API server does not
	// answer: for the resource lease, which they acquire or release. The leader's lease is
	// released after both, and a pod has 30 s in all.
	stopWithin = 5 * time.Second
	// pauseAfterFailure is the pause after a try that failed.
	pauseAfterFailure = time.Second
	// lastPause is the pause after a try that failed when the controller stops.
	lastPause = 200 * time.Millisecond
)

// API is the API server as far as events are concerned.
type API interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, patch []byte) (*corev1.Event, error)
}

// Queue writes events one after the other. client-go's own recorder drops what comes
// while 25 wait, and sums up after 10 in 10 minutes, but every failed attempt is an event.
type Queue struct {
	scheme     *runtime.Scheme
	api        API
	correlator *record.EventCorrelator
	log        *slog.Logger
	added      chan struct{} // has room for one token

	mu      sync.Mutex // guards all below
	waiting []waitingEvent
	// failed are those that a try has failed for. They stand back behind the others: what
	// failed may fail for them alone.
	failed  []waitingEvent
	dropped int
	// named is the time in the last name: two events of one instant are two.
	named int64
}

// waitingEvent is an event that waits.
type waitingEvent struct {
	*corev1.Event
	// seen is what the correlator made of it, once it was asked.
	seen *record.EventCorrelateResult
}

// New returns a queue, which writes nothing before it runs.
func New(scheme *runtime.Scheme, api API, log *slog.Logger) *Queue {
	return &Queue{
		scheme: scheme, api: api, log: log, added: make(chan struct{}, 1),
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

// Add queues an event about an object. It waits for nothing.
func (q *Queue) Add(about runtime.Object, kind, reason, message string) {
	ref, err := reference.GetReference(q.scheme, about)
	if err != nil { // not a kind of the scheme
		q.log.Error("no event", "reason", reason, "err", err)
		return
	}
	now, message := metav1.Now(), words.OfAnyTry(message)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cmp.Or(ref.Namespace, metav1.NamespaceDefault), // that of events about nodes
		},
		InvolvedObject: *ref, Reason: reason, Message: message, Type: kind,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: apiserver.FieldOwner}, ReportingController: apiserver.FieldOwner,
	}
	q.mu.Lock()
	q.named = max(now.UnixNano(), q.named+1)
	event.Name = fmt.Sprintf("%.200s.%x", ref.Name, q.named)
	if len(q.waiting)+len(q.failed) >= mostWaiting {
		oldest := &q.waiting
		if len(q.failed) > 0 {
			oldest = &q.failed
		}
		*oldest = (*oldest)[1:]
		q.dropped++
	}
	q.waiting = append(q.waiting, waitingEvent{Event: event})
	q.mu.Unlock()
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// next takes the oldest event, of those that no try has failed for if there are such;
// false if none waits.
func (q *Queue) next() (waitingEvent, bool) {
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
		return waitingEvent{}, false
	}
	event := (*from)[0]
	*from = (*from)[1:]
	return event, true
}

// Run writes events until the context is done, and then those that still wait, as long
// as it may.
func (q *Queue) Run(ctx context.Context) {
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(stopWithin, end) })
	defer stop()
	for ending.Err() == nil {
		if event, waits := q.next(); waits {
			if q.write(ending, &event) {
				q.forgets(event)
				continue
			}
			q.again(event)
			if ctx.Err() != nil {
				_ = sleep.For(ending, lastPause)
			} else {
				_ = sleep.For(ctx, pauseAfterFailure)
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
	if n := len(q.waiting) + len(q.failed); n > 0 {
		q.log.Warn("events are lost: the controller stops, and the API server did not take them in time", "events", n)
	}
}

// again puts an event behind all that wait.
func (q *Queue) again(event waitingEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = append(q.failed, event)
}

// forgets drops what failed before an event that counts on from it: written later, it
// would put the count back.
func (q *Queue) forgets(told waitingEvent) {
	if told.seen == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = slices.DeleteFunc(q.failed, func(e waitingEvent) bool {
		return e.seen.Event.Name == told.seen.Event.Name && e.seen.Event.Count < told.seen.Event.Count
	})
}

// Waiting are the events that no try was made for yet.
func (q *Queue) Waiting() []*corev1.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*corev1.Event, len(q.waiting))
	for i, e := range q.waiting {
		all[i] = e.Event
	}
	return all
}
