// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/nic"
)

// Counts is the number of machines out of sync, by state.
type Counts struct{ Working, Waiting, Failed int }

// MachineCounts counts the machines out of sync.
func (u *Updater) MachineCounts() (c Counts) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.workers {
		for _, m := range l.machines {
			switch m.state {
			case stateWorking:
				c.Working++
			case stateWaiting:
				c.Waiting++
			case stateFailed:
				c.Failed++
			}
		}
	}
	return c
}

// recordWrite ignores requests that were never sent.
func (a *attempt) recordWrite(kind nic.Kind, err error) {
	if err != nil && armerror.FromError(err).IsNotSent() {
		return
	}
	a.hasWrites = true
	if a.u.cfg.Metrics != nil {
		a.u.cfg.Metrics.ObserveWrite(kind, err)
	}
}

// startTimer requires u.mu.
func (m *machine) startTimer(now time.Time) {
	if m.startedAt.IsZero() {
		m.startedAt = now
	}
}

// stopTimer reports nothing if the worker wrote nothing in between. It requires u.mu.
func (m *machine) stopTimer(by Metrics, now time.Time) {
	if by != nil && !m.startedAt.IsZero() && !m.worker.lastWriteAt.Before(m.startedAt) {
		by.ObserveDuration(now.Sub(m.startedAt))
	}
	m.startedAt = time.Time{}
}
