// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/sleep"
)

// waits pauses the migration, and records that the stop took effect. The rest of Weir is paused
// too: it must not refill what the migration has emptied.
func (m *Migration) waits(ctx context.Context, stored migrate.Journal, stop migrate.Wish) (time.Duration, error) {
	if m.heard == nil || *m.heard != stop {
		m.cfg.Log.Warn("migration to Standard load balancers is stopped, and nothing else is written: weir migrate resume has it go on",
			"by", stop.By, "at", stop.At, "why", stop.Why, "begun", stored.Open())
		m.heard = &stop
	}
	next := stored
	if stored.Open() {
		next.Heard = stop.At
	}
	return lookAgainAfter, m.keep(ctx, stored, next)
}

func (m *Migration) goesOn() {
	if m.heard != nil {
		m.cfg.Log.Info("migration to Standard load balancers goes on: the stop was taken back", "by", m.heard.By)
	}
	m.heard = nil
}

// begins is false after an undo until a user starts it again.
func (m *Migration) begins(stored migrate.Journal, requests migrate.Asked) bool {
	return m.cfg.Begins && stored.Undone == nil || m.cfg.Hears && requests.Run != nil
}

// answered removes the request even if the migration didn't start. On false the caller retries: the
// next leader would give up its lead for the request again.
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

const listensEvery = 10 * time.Second

// foundLate reports whether Azure, unreadable before, now shows anything Basic.
func (m *Migration) foundLate(ctx context.Context, stored migrate.Journal) bool {
	services := m.cfg.Services()
	snapshot, err := m.read(ctx, stored, services)
	m.unread = err != nil
	return err == nil && migrate.Stock(stored, snapshot, services, m.cfg.Location).Open()
}

// Listen gives up the lead when a user requests a migration or the undo of a failed one, or when
// Azure becomes readable and shows anything Basic. Call it after Run.
func (m *Migration) Listen(ctx context.Context) {
	if !m.cfg.Hears || m.over {
		m.cfg.Owed.watch(ctx, m.cfg.Store)
		return
	}
	failures, due := 0, time.Now()
	for ctx.Err() == nil {
		stored, requests, err := m.cfg.Store.Read(ctx)
		if err == nil {
			m.cfg.Owed.set(stored, requests)
		}
		if m.unread && err == nil && requests.Stop == nil && !time.Now().Before(due) {
			if m.foundLate(ctx, stored) {
				m.cfg.Log.Info("Azure answers, and load balancers of the cluster are Basic: the lead is given up, and the next leader begins with the migration")
				m.cfg.Again()
				return
			}
			failures++
			due = time.Now().Add(again.After(failures))
		}
		switch {
		case err != nil:
		case requests.Stop != nil && requests.Stop.Undo && stored.Open() && m.strange(stored) == nil: // the failed migration may have changed something
			m.cfg.Log.Info("a migration to Standard load balancers is to be taken back: the lead is given up, and the next leader begins with that", "by", requests.Stop.By, "at", requests.Stop.At)
			m.cfg.Again()
			return
		case requests.Run != nil:
			m.cfg.Log.Info("a migration to Standard load balancers was asked for: the lead is given up, and the next leader begins with it", "by", requests.Run.By, "at", requests.Run.At)
			m.cfg.Again()
			return
		}
		_ = sleep.For(ctx, listensEvery)
	}
}
