// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/nic"
)

// Counts says how many machines there are by what becomes of them, of those that are not where they belong.
type Counts struct{ Working, Waiting, Failed int }

// Machines counts the machines that are not where they belong.
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

// wrote tells of a request of the try; one that never left is none.
func (t *try) wrote(kind nic.Kind, err error) {
	if err != nil && fault.From(err).Unsent() {
		return
	}
	t.writes = true
	if t.u.cfg.Meter != nil {
		t.u.cfg.Meter.Wrote(kind, err)
	}
}

// moves has a machine measured from now on, unless it is already. The caller holds u.mu.
func (m *machine) moves(now time.Time) {
	if m.since.IsZero() {
		m.since = now
	}
}

// moved ends that. One whose lane wrote nothing in between was where it belongs. The caller holds u.mu.
func (m *machine) moved(by Meter, now time.Time) {
	if by != nil && !m.since.IsZero() && !m.lane.wroteAt.Before(m.since) {
		by.Moved(now.Sub(m.since))
	}
	m.since = time.Time{}
}
