// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
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
	retryingAdvice = ". Another attempt follows"
)

// warn puts an event on a BackendPool.
func (q *eventQueue) warn(p *v1alpha1.BackendPool, reason, why string) {
	q.add(p, corev1.EventTypeWarning, reason, sentence(why, maxMessage))
}

// tell puts the events of an attempt on its Services.
func (c *Cluster) tell(r poolupdate.Report) {
	for _, say := range []struct {
		to           []poolupdate.ServiceName
		kind, reason string
		text         func(poolupdate.Report) string
	}{
		{r.Retrying, corev1.EventTypeWarning, EventRetrying, retryingEvent},
		{r.Failed, corev1.EventTypeWarning, EventFailed, failedEvent},
		{r.Updated, corev1.EventTypeNormal, EventUpdated, func(poolupdate.Report) string { return updatedMessage }},
	} {
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

func failedEvent(r poolupdate.Report) string {
	return failedPrefix + faultText(r.Fault, maxMessage-len(failedPrefix)-len(failedAdvice)) + failedAdvice
}
