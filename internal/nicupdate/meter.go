// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/nic"
)

// Counts is the number of machines out of sync, by state.
type Counts struct{ Working, Waiting, Failed int }

// Machines counts the machines out of sync.
func (u *Updater) Machines() (c Counts) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.lanes {
		for _, m := range l.machines {
			switch m.state {
			case working:
				c.Working++
			case waiting:
				c.Waiting++
			case failing:
				c.Failed++
			}
		}
	}
	return c
}

// wrote ignores requests that were never sent.
func (t *try) wrote(kind nic.Kind, err error) {
	if err != nil && fault.From(err).Unsent() {
		return
	}
	t.writes = true
	if t.u.cfg.Meter != nil {
		t.u.cfg.Meter.Wrote(kind, err)
	}
}

// moves requires u.mu.
func (m *machine) moves(now time.Time) {
	if m.since.IsZero() {
		m.since = now
	}
}

// moved reports nothing if the worker wrote nothing in between. It requires u.mu.
func (m *machine) moved(by Meter, now time.Time) {
	if by != nil && !m.since.IsZero() && !m.lane.wroteAt.Before(m.since) {
		by.Moved(now.Sub(m.since))
	}
	m.since = time.Time{}
}
