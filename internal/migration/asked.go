// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/sleep"
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

// begins reports whether a migration begins where something is Basic. Whoever had one taken back says when.
func (m *Migration) begins(kept migrate.Journal, asked migrate.Asked) bool {
	return m.cfg.Begins && kept.Undone == nil || m.cfg.Hears && asked.Run != nil
}

// answered takes out what people have asked to begin, whether it has or not, and reports whether nothing is left of
// that: whoever leads next would give up its lead for it again.
func (m *Migration) answered(ctx context.Context) bool {
	if !m.asked {
		return true
	}
	if err := m.cfg.Store.Answered(ctx); err != nil {
		m.cfg.Log.Warn("migration to Standard load balancers: what was asked is not taken out", "err", err)
		return false
	}
	return true
}

// listensEvery is how often it is looked whether somebody asks for a migration.
const listensEvery = 10 * time.Second

// foundLate reports whether Azure shows by now that something is Basic, which it could not be asked before.
func (m *Migration) foundLate(ctx context.Context, kept migrate.Journal) bool {
	services := m.cfg.Services()
	seen, err := m.read(ctx, kept, services)
	m.unread = err != nil
	return err == nil && migrate.Stock(kept, seen, services, m.cfg.Location).Open()
}

// Listen ends the lead once somebody asks for a migration, or has one taken back that was given up, or once Azure shows what it could
// not be asked when Run began. Run has returned by then. It returns at once where there is
// nothing to ask for.
func (m *Migration) Listen(ctx context.Context) {
	if !m.cfg.Hears || m.over {
		m.cfg.Owed.watch(ctx, m.cfg.Store)
		return
	}
	failures, due := 0, time.Now()
	for ctx.Err() == nil {
		kept, asked, err := m.cfg.Store.Read(ctx)
		if err == nil {
			m.cfg.Owed.set(kept, asked)
		}
		if m.unread && err == nil && asked.Stop == nil && !time.Now().Before(due) {
			if m.foundLate(ctx, kept) {
				m.cfg.Log.Info("Azure answers, and load balancers of the cluster are Basic: the lead is given up, and the next leader begins with the migration")
				m.cfg.Again()
				return
			}
			failures++
			due = time.Now().Add(again.After(failures))
		}
		switch {
		case err != nil:
		case asked.Stop != nil && asked.Stop.Undo && kept.Open() && m.strange(kept) == nil: // it was given up, and something may be left of it
			m.cfg.Log.Info("a migration to Standard load balancers is to be taken back: the lead is given up, and the next leader begins with that", "by", asked.Stop.By, "at", asked.Stop.At)
			m.cfg.Again()
			return
		case asked.Run != nil:
			m.cfg.Log.Info("a migration to Standard load balancers was asked for: the lead is given up, and the next leader begins with it", "by", asked.Run.By, "at", asked.Run.At)
			m.cfg.Again()
			return
		}
		_ = sleep.For(ctx, listensEvery)
	}
}
