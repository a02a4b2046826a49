// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

// Reasons of the events on Services, and on BackendPools that have none. The names are a
// contract: users and tools of the Azure cloud provider know them.
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
	// ofNodesAdvice is for who has no Service with endpoints to change.
	ofNodesAdvice  = ". To retrigger, set and unset spec.paused."
	retryingAdvice = ". Another attempt follows"
)

// warn puts an event on a BackendPool.
func (q *eventQueue) warn(p *v1alpha1.BackendPool, reason, why string) {
	q.add(p, corev1.EventTypeWarning, reason, sentence(why, maxMessage))
}

// said is one word of an attempt, and whom it is for.
type said struct {
	to           []poolupdate.ServiceName
	kind, reason string
	text         func(poolupdate.Report) string
}

// saidOf are the words of an attempt, the last word last.
func saidOf(r poolupdate.Report) []said {
	return []said{
		{r.Updated, corev1.EventTypeNormal, EventUpdated, func(poolupdate.Report) string { return updatedMessage }},
		{r.Retrying, corev1.EventTypeWarning, EventRetrying, retryingEvent},
		{r.Failed, corev1.EventTypeWarning, EventFailed, failedEvent},
	}
}

// tell puts the events of an attempt on its Services.
func (c *Cluster) tell(r poolupdate.Report) {
	for _, say := range saidOf(r) {
		for _, name := range say.to {
			if service := c.snap.service(name); service != nil {
				c.events.add(service, say.kind, say.reason, say.text(r))
			}
		}
	}
}

func retryingEvent(r poolupdate.Report) string {
	advice := retryingAdvice + " at " + stamp(r.RetryAt) + "."
	return failedPrefix + faultText(r.Fault, maxMessage-len(failedPrefix)-len(advice)) + advice
}

func failedEvent(r poolupdate.Report) string { return failedWith(failedAdvice)(r) }

func failedWith(advice string) func(poolupdate.Report) string {
	return func(r poolupdate.Report) string {
		return failedPrefix + faultText(r.Fault, maxMessage-len(failedPrefix)-len(advice)) + advice
	}
}

// tellOfNodes puts an event on a pool of nodes, which has no Service whose event it could
// be.
func (q *eventQueue) tellOfNodes(p *v1alpha1.BackendPool, word string, r poolupdate.Report) {
	switch word {
	case EventRetrying:
		q.add(p, corev1.EventTypeWarning, word, retryingEvent(r))
	case EventFailed:
		q.add(p, corev1.EventTypeWarning, word, failedWith(ofNodesAdvice)(r))
	case EventUpdated:
		q.add(p, corev1.EventTypeNormal, word, updatedMessage)
	}
}

// says returns a word if it is another than the last one, else "". That the pool was
// level already is news only after a failure.
func (e *entry) says(word string, unchanged bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if word == "" || word == e.word || unchanged && e.word == "" {
		return ""
	}
	e.word = word
	return word
}

// wordOf is what a Service would be told of an attempt.
func wordOf(r poolupdate.Report) (word string, unchanged bool) {
	if r.Admin && !r.Settled { // other events speak of admin states
		return "", false
	}
	switch r.Outcome {
	case poolupdate.Written, poolupdate.Unchanged:
		return EventUpdated, r.Outcome == poolupdate.Unchanged || r.Admin
	case poolupdate.Retriable:
		if r.Requeued {
			return EventRetrying, false
		}
		return EventFailed, false
	case poolupdate.Terminal:
		return EventFailed, false
	}
	return "", false
}
