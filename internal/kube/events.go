// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolupdate"
)

// Reasons of the events on Services. The names are a contract: users and tools of the
// Azure cloud provider know them.
const (
	EventUpdated  = "LoadBalancerBackendPoolUpdated"
	EventRetrying = "LoadBalancerBackendPoolUpdateRetrying"
	EventFailed   = "LoadBalancerBackendPoolUpdateFailed"
)

// EventLeftInPlace is the reason of the event on a BackendPool that was deleted while
// it was paused.
const EventLeftInPlace = "LeftInPlace"

const (
	updatedMessage = "Load balancer backend pool updated successfully"
	failedPrefix   = "Backend pool update failed: "
	failedAdvice   = ". To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod)."
	retryingAdvice = ". Another attempt follows."
)

// events writes Kubernetes events. Every failed attempt is one, so nothing is
// aggregated and nothing dropped: by default the client sums up after 10 in 10
// minutes and drops after 25 an object.
type events struct {
	recorder    record.EventRecorder
	broadcaster record.EventBroadcaster
	sink        typedcorev1.EventsGetter
}

func newEvents(scheme *runtime.Scheme, sink typedcorev1.EventsGetter) *events {
	b := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{
		BurstSize: math.MaxInt32,
		QPS:       math.MaxInt32,
		MaxEvents: math.MaxInt32,
		// Each message is a group of its own, so that no group grows.
		KeyFunc: func(e *corev1.Event) (group, within string) {
			group, within = record.EventAggregatorByReasonFunc(e)
			return group + within, within
		},
	}))
	return &events{
		broadcaster: b, sink: sink,
		recorder: b.NewRecorder(scheme, corev1.EventSource{Component: fieldOwner}),
	}
}

// Start implements manager.Runnable: it writes events until the context is done.
func (e *events) Start(ctx context.Context) error {
	e.broadcaster.StartRecordingToSink(patientSink{&typedcorev1.EventSinkImpl{Interface: e.sink.Events("")}, ctx})
	<-ctx.Done()
	e.broadcaster.Shutdown()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. Events are written to
// the end: what stops last is what needs no leader.
func (*events) NeedLeaderElection() bool { return false }

// warn puts an event on a BackendPool.
func (e *events) warn(p *v1alpha1.BackendPool, reason, why string) {
	e.recorder.Event(p, corev1.EventTypeWarning, reason, sentence(why, maxMessage))
}

// tell puts the events of an attempt on its Services.
func (c *Cluster) tell(r poolupdate.Report) {
	for _, say := range []struct {
		to           []poolupdate.ServiceName
		kind, reason string
		text         func(*fault.Fault) string
	}{
		{r.Retrying, corev1.EventTypeWarning, EventRetrying, retryingEvent},
		{r.Failed, corev1.EventTypeWarning, EventFailed, failedEvent},
		{r.Updated, corev1.EventTypeNormal, EventUpdated, func(*fault.Fault) string { return updatedMessage }},
	} {
		for _, name := range say.to {
			if service := c.snap.service(name); service != nil {
				c.events.recorder.Event(service, say.kind, say.reason, say.text(r.Fault))
			}
		}
	}
}

func retryingEvent(f *fault.Fault) string {
	return failedPrefix + faultText(f, maxMessage-len(failedPrefix)-len(retryingAdvice)) + retryingAdvice
}

func failedEvent(f *fault.Fault) string {
	return failedPrefix + faultText(f, maxMessage-len(failedPrefix)-len(failedAdvice)) + failedAdvice
}
