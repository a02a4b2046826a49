// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"weir.dev/weir/internal/leader"
)

// writeEvent reports whether an event is written or rejected for good.
func (q *EventQueue) writeEvent(ctx context.Context, event *queuedEvent) (done bool) {
	if event.correlated == nil {
		seen, err := q.correlator.EventCorrelate(event.Event)
		if err != nil {
			q.log.Error("no event", "reason", event.Reason, "err", err)
			return true
		}
		event.correlated = seen
	}
	err := q.writeOnce(ctx, event.correlated.Event, event.correlated.Patch)
	if errors.Is(err, leader.ErrNotLeader) {
		return true // the new leader reports from now on
	}
	if err != nil && IsTransient(err) && (!IsResponse(err) || time.Since(event.FirstTimestamp.Time) <= maxRetryTime) {
		q.log.Debug("event not written, trying again", "reason", event.Reason, "err", err)
		return false
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true // the namespace is being deleted
	}
	if err != nil {
		q.log.Warn("event refused", "object", event.InvolvedObject.Kind+" "+event.InvolvedObject.Namespace+"/"+event.InvolvedObject.Name,
			"reason", event.Reason, "err", err)
	}
	return true
}

func (q *EventQueue) writeOnce(ctx context.Context, event *corev1.Event, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var written *corev1.Event
	var err error
	isRepeated := event.Count > 1
	if isRepeated {
		written, err = q.api.PatchWithEventNamespaceWithContext(ctx, event, patch)
	}
	if !isRepeated || apierrors.IsNotFound(err) { // expired
		event.ResourceVersion = ""
		written, err = q.api.CreateWithEventNamespaceWithContext(ctx, event)
	}
	if apierrors.IsAlreadyExists(err) { // an earlier attempt succeeded
		return nil
	}
	if err == nil {
		q.correlator.UpdateState(written)
	}
	return err
}
