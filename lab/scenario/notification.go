// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// notificationStatus is the last notification in a status. It outlives the process.
type notificationStatus struct {
	// lastReason is the last event on the Service, or "".
	lastReason string
	// failureReason is why the last change was given up, or "".
	failureReason string
}

func (t notificationStatus) afterReport(r updater.Report) notificationStatus {
	for _, said := range reportEvents(r) {
		if len(said.to) > 0 {
			t.lastReason = said.reason
		}
	}
	t.failureReason = r.FailureReason
	return t
}

// recalledState returns what a new process reads from the status.
func (t notificationStatus) recalledState() schedule.LastNotification {
	return schedule.LastNotification{IsFailure: t.lastReason == "Retrying" || t.lastReason == "Failed", FailureReason: t.failureReason}
}

// reportEvent is an event of an attempt and its recipient.
type reportEvent struct {
	reason string
	to     []schedule.ServiceName
}

// reportEvents returns the events of an attempt in order.
func reportEvents(r updater.Report) []reportEvent {
	return []reportEvent{{"Updated", r.Updated}, {"Retrying", r.Retrying}, {"Failed", r.Failed}}
}

// restoreStatus restores a pool's state from its status after a restart. The caller holds the stage's
// mu.
func (k *pool) restoreStatus(b *backendPool) {
	k.rejectedUntil, k.failureReason = b.retryAfter, b.notification.failureReason
	if b.notification.lastReason != "" && b.service != "" {
		k.lastEvents = map[string]string{b.service: b.notification.lastReason}
	}
}
