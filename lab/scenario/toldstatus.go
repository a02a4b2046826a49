// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"weir.dev/weir/internal/poolupdate"

	"weir.dev/weir/internal/poolschedule"
)

// toldStatus is the last notification in a status. It outlives the process.
type toldStatus struct {
	// word is the last event on the Service, or "".
	word string
	// givenUpFor is why the last change was given up, or "".
	givenUpFor string
}

// after returns the state after a report.
func (t toldStatus) after(r poolupdate.Report) toldStatus {
	for _, said := range saidOf(r) {
		if len(said.to) > 0 {
			t.word = said.word
		}
	}
	t.givenUpFor = r.FailureReason
	return t
}

// recalled returns what a new process reads from the status.
func (t toldStatus) recalled() poolschedule.LastNotification {
	return poolschedule.LastNotification{IsFailure: t.word == "Retrying" || t.word == "Failed", FailureReason: t.givenUpFor}
}

// said is an event of an attempt and its recipient.
type said struct {
	word string
	to   []poolschedule.ServiceName
}

// saidOf returns the events of an attempt in order.
func saidOf(r poolupdate.Report) []said {
	return []said{{"Updated", r.Updated}, {"Retrying", r.Retrying}, {"Failed", r.Failed}}
}

// remembers restores a pool's state from its status after a restart. The caller holds the stage's
// mu.
func (k *pool) remembers(b *binding) {
	k.patience, k.surrender = b.notBefore, b.told.givenUpFor
	if b.told.word != "" && b.service != "" {
		k.words = map[string]string{b.service: b.told.word}
	}
}
