// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/words"
)

// Event reasons on Services and on BackendPools of nodes. They match cloud-provider-azure, so users and tools
// rely on them.
const (
	EventUpdated  = "LoadBalancerBackendPoolUpdated"
	EventRetrying = "LoadBalancerBackendPoolUpdateRetrying"
	EventFailed   = "LoadBalancerBackendPoolUpdateFailed"
)

// EventLeftInPlace is the event reason for a BackendPool deleted while paused.
const EventLeftInPlace = "LeftInPlace"

const (
	updatedMessage = "Load balancer backend pool updated successfully"
	failedPrefix   = "Backend pool update failed: "
	failureAdvice  = ". To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod)."
	// nodePoolAdvice is for pools without a Service.
	nodePoolAdvice = ". To retrigger: weir retry."
	retryAdvice    = ". Another attempt follows"
)

func (c *Controller) recordWarning(p *v1alpha1.BackendPool, reason, why string) {
	c.Events.OnPool(p, Event{Warning, reason, words.FormatMessage(why, words.MaxMessage)})
}

// attemptEvent is one event of an attempt and the Services that get it.
type attemptEvent struct {
	to           []poolschedule.ServiceName
	kind, reason string
	text         func(poolupdate.Report) string
}

func eventsOf(r poolupdate.Report) []attemptEvent {
	return []attemptEvent{
		{r.Updated, Normal, EventUpdated, func(poolupdate.Report) string { return updatedMessage }},
		{r.Retrying, Warning, EventRetrying, retryEventMessage},
		{r.Failed, Warning, EventFailed, failureEventMessage},
	}
}

func (c *Controller) recordServiceEvents(r poolupdate.Report) {
	for _, say := range eventsOf(r) {
		for _, name := range say.to {
			c.Events.OnService(name, Event{say.kind, say.reason, say.text(r)})
		}
	}
}

func retryEventMessage(r poolupdate.Report) string {
	advice := retryAdvice + " at " + words.FormatTime(r.RetryAt) + "."
	return failedPrefix + words.FormatFault(r.Fault, words.MaxMessage-len(failedPrefix)-len(advice)) + advice
}

func failureEventMessage(r poolupdate.Report) string { return failureMessageWith(failureAdvice)(r) }

func failureMessageWith(advice string) func(poolupdate.Report) string {
	return func(r poolupdate.Report) string {
		return failedPrefix + words.FormatFault(r.Fault, words.MaxMessage-len(failedPrefix)-len(advice)) + advice
	}
}

func (c *Controller) recordNodePoolEvent(p *v1alpha1.BackendPool, reason string, r poolupdate.Report) {
	switch reason {
	case EventRetrying:
		c.Events.OnPool(p, Event{Warning, reason, retryEventMessage(r)})
	case EventFailed:
		c.Events.OnPool(p, Event{Warning, reason, failureMessageWith(nodePoolAdvice)(r)})
	case EventUpdated:
		c.Events.OnPool(p, Event{Normal, reason, updatedMessage})
	}
}

// nextEventReason returns reason if it differs from the last event's, else "". An unchanged pool gets an event only
// after a failure.
func (e *Entry) nextEventReason(reason string, unchanged bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if reason == "" || reason == e.lastEvent || unchanged && e.lastEvent == "" {
		return ""
	}
	e.lastEvent = reason
	return reason
}

func eventReason(r poolupdate.Report) (reason string, unchanged bool) {
	if r.Admin && !r.InSync { // admin states have their own events
		return "", false
	}
	switch r.Outcome {
	case poolwrite.Written, poolwrite.Unchanged:
		return EventUpdated, r.Outcome == poolwrite.Unchanged || r.Admin
	case poolwrite.Retriable:
		if r.WillRetry {
			return EventRetrying, false
		}
		return EventFailed, false
	case poolwrite.Terminal:
		return EventFailed, false
	}
	return "", false
}
