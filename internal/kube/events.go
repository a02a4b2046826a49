// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
)

// Reasons of the events on Services, and on BackendPools that have none. The names are a
// contract: users and tools of the Azure cloud provider know them.
const (
	EventUpdated  = backendpool.EventUpdated
	EventRetrying = backendpool.EventRetrying
	EventFailed   = backendpool.EventFailed
)

// EventLeftInPlace is the reason of the event on a BackendPool that was deleted while
// it was paused.
const EventLeftInPlace = backendpool.EventLeftInPlace

// EventPoolContested is the reason of the event on a BackendPool when its Contested condition
// comes.
const EventPoolContested = backendpool.EventPoolContested

// warn puts an event on a BackendPool.
func (q *eventQueue) warn(p *v1alpha1.BackendPool, reason, why string) {
	q.add(p, corev1.EventTypeWarning, reason, sentence(why, maxMessage))
}
