// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"weir.dev/weir/internal/migrate"
)

// waits has nothing more be written while a person wants that, and notes that it was heard. All else of Weir
// waits, too: what is taken apart nobody else may fill.
func (m *Migration) waits(ctx context.Context, kept migrate.Journal, stop migrate.Wish) (time.Duration, error) {
	if m.heard == nil || *m.heard != stop {
		m.cfg.Log.Warn("migration to Standard load balancers is stopped, and nothing else is written: weir migrate resume has it go on",
			"by", stop.By, "at", stop.At, "why", stop.Why, "begun", kept.Open())
		m.heard = &stop
	}
	next := kept
	if kept.Open() {
		next.Heard = stop.At
	}
	return lookAgainAfter, m.keep(ctx, kept, next)
}

// goesOn says so if somebody had it stop.
func (m *Migration) goesOn() {
	if m.heard != nil {
		m.cfg.Log.Info("migration to Standard load balancers goes on: the stop was taken back", "by", m.heard.By)
	}
	m.heard = nil
}
