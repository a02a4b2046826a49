// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"strings"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
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
	// repairedAddition is for a write without a change in the cluster.
	repairedAddition = ": nothing had changed in the cluster, and the pool in Azure differed from what Weir had written"
	failedPrefix     = "Backend pool update failed: "
	failureAdvice    = ". To retrigger, cause an endpoint change for the Service (e.g., restart or scale a backing pod)."
	// nodePoolAdvice is for pools without a Service.
	nodePoolAdvice = ". To retrigger: weir retry."
	retryAdvice    = ". Another attempt follows"
)

func (c *Controller) recordWarning(p *v1alpha1.BackendPool, reason, message string) {
	c.Events.OnPool(p, Event{Warning, reason, humanize.FormatMessage(message, humanize.MaxMessage)})
}

// attemptEvent is one event of an attempt and the Services that get it.
type attemptEvent struct {
	to           []schedule.ServiceName
	kind, reason string
	text         func(updater.Report) string
}

func eventsOf(r updater.Report) []attemptEvent {
	return []attemptEvent{
		{r.Updated, Normal, EventUpdated, updatedText},
		{r.Retrying, Warning, EventRetrying, retryEventMessage},
		{r.Failed, Warning, EventFailed, failureEventMessage},
	}
}

func (c *Controller) recordServiceEvents(r updater.Report) {
	for _, event := range eventsOf(r) {
		for _, name := range event.to {
			c.Events.OnService(name, Event{event.kind, event.reason, event.text(r)})
		}
	}
}

// isRepair reports whether a resync found a difference in Azure and wrote the pool. Reverts of a contested pool have events of their own.
func isRepair(r updater.Report) bool {
	return r.Resync && r.Outcome == diff.Written && len(r.Conflicting) == 0
}

func updatedText(r updater.Report) string {
	if isRepair(r) {
		return updatedMessage + repairedAddition
	}
	return updatedMessage
}

func retryEventMessage(r updater.Report) string {
	advice := retryAdvice + " at " + humanize.FormatTime(r.RetryAt) + "."
	return withAdvice(r, advice)
}

// withAdvice appends advice, which begins with a period, to the failure of an attempt.
func withAdvice(r updater.Report, advice string) string {
	text := failedPrefix + humanize.FormatFault(r.Fault, humanize.MaxMessage-len(failedPrefix)-len(advice))
	if strings.HasSuffix(text, "…") {
		advice = strings.TrimPrefix(advice, ".")
	}
	return text + advice
}

func failureEventMessage(r updater.Report) string { return failureMessageWith(failureAdvice)(r) }

func failureMessageWith(advice string) func(updater.Report) string {
	return func(r updater.Report) string {
		return withAdvice(r, advice)
	}
}

func (c *Controller) recordNodePoolEvent(p *v1alpha1.BackendPool, reason string, r updater.Report) {
	switch reason {
	case EventRetrying:
		c.Events.OnPool(p, Event{Warning, reason, retryEventMessage(r)})
	case EventFailed:
		c.Events.OnPool(p, Event{Warning, reason, failureMessageWith(nodePoolAdvice)(r)})
	case EventUpdated:
		c.Events.OnPool(p, Event{Normal, reason, updatedText(r)})
	}
}

// nextEventReason returns reason if it differs from the last event's, else "". An unchanged pool gets an event only
// after a failure.
func (e *Entry) nextEventReason(reason string, unchanged bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := lastEvent(&e.status).Reason; reason == last || unchanged && last == "" {
		return ""
	}
	return reason
}

func eventReason(r updater.Report) (reason string, unchanged bool) {
	if r.Admin && !r.InSync { // admin states have their own events
		return "", false
	}
	switch r.Outcome {
	case diff.Written, diff.Unchanged:
		return EventUpdated, r.Outcome == diff.Unchanged || r.Admin
	case diff.Retriable:
		if r.WillRetry {
			return EventRetrying, false
		}
		return EventFailed, false
	case diff.Terminal:
		return EventFailed, false
	}
	return "", false
}
