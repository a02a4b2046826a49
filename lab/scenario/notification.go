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

func (n notificationStatus) afterReport(r updater.Report) notificationStatus {
	for _, event := range reportEvents(r) {
		if len(event.to) > 0 {
			n.lastReason = event.reason
		}
	}
	n.failureReason = r.FailureReason
	return n
}

// recalledState returns what a new process reads from the status.
func (n notificationStatus) recalledState() schedule.LastNotification {
	return schedule.LastNotification{IsFailure: n.lastReason == "Retrying" || n.lastReason == "Failed", FailureReason: n.failureReason}
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
func (p *pool) restoreStatus(b *backendPool) {
	p.rejectedUntil, p.failureReason = b.retryAfter, b.notification.failureReason
	if b.notification.lastReason != "" && b.service != "" {
		p.lastEvents = map[string]string{b.service: b.notification.lastReason}
	}
}
