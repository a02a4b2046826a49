// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"time"

	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/skumigration/phase"
)

// pauseForStop pauses the migration, and records that the stop took effect. The rest of Weir is paused
// too: it must not refill what the migration has emptied.
func (m *Migration) pauseForStop(ctx context.Context, stored phase.Journal, stop phase.UserRequest) (time.Duration, error) {
	if m.loggedStop == nil || *m.loggedStop != stop {
		m.cfg.Log.Warn("migration to Standard load balancers is stopped, and nothing else is written: weir migrate resume has it go on",
			"by", stop.By, "at", stop.At, "why", stop.Reason, "begun", stored.IsOpen())
		m.loggedStop = &stop
	}
	next := stored
	if stored.IsOpen() {
		next.StopSeenAt = stop.At
	}
	return pollInterval, m.saveJournal(ctx, stored, next)
}

func (m *Migration) logResumed() {
	if m.loggedStop != nil {
		m.cfg.Log.Info("migration to Standard load balancers continues: the stop was withdrawn", "by", m.loggedStop.By)
	}
	m.loggedStop = nil
}

// shouldStart is false after an undo until a user starts it again.
func (m *Migration) shouldStart(stored phase.Journal, requests phase.UserRequests) bool {
	return m.cfg.AutoStart && stored.CompletedUndo == nil || m.cfg.AcceptRequests && requests.Run != nil
}

// clearStartRequest removes the request even if the migration didn't start. On false the caller retries: the
// next leader would give up its lead for the request again.
func (m *Migration) clearStartRequest(ctx context.Context) bool {
	if !m.startRequested {
		return true
	}
	if err := m.cfg.Store.ClearStartRequest(ctx); err != nil {
		m.cfg.Log.Warn("migration to Standard load balancers: the request could not be removed", "err", err)
		return false
	}
	return true
}

const requestPollInterval = 10 * time.Second

// hasBasicNow reports whether Azure, unreadable before, now shows anything Basic.
func (m *Migration) hasBasicNow(ctx context.Context, stored phase.Journal) bool {
	services := m.cfg.Services()
	snapshot, err := m.readSnapshot(ctx, stored, services)
	m.readFailed = err != nil
	return err == nil && phase.BuildJournal(stored, snapshot, services, m.cfg.Location).IsOpen()
}

// WatchRequests gives up the lead when a user requests a migration or the undo of a failed one, or when
// Azure becomes readable and shows anything Basic. Call it after Run.
func (m *Migration) WatchRequests(ctx context.Context) {
	if !m.cfg.AcceptRequests || m.isComplete {
		m.cfg.Claims.watch(ctx, m.cfg.Store)
		return
	}
	failures, due := 0, time.Now()
	for ctx.Err() == nil {
		stored, requests, err := m.cfg.Store.Load(ctx)
		if err == nil {
			m.cfg.Claims.update(stored, requests)
		}
		if m.readFailed && err == nil && requests.Stop == nil && !time.Now().Before(due) {
			if m.hasBasicNow(ctx, stored) {
				m.cfg.Log.Info("Azure responds, and load balancers of the cluster are Basic: leadership is released, and the next leader starts with the migration")
				m.cfg.EndLead()
				return
			}
			failures++
			due = time.Now().Add(retryBackoff.DelayAfter(failures))
		}
		switch {
		case err != nil:
		case requests.Stop != nil && requests.Stop.Undo && stored.IsOpen() && m.checkLoadBalancers(stored) == nil: // the failed migration may have changed something
			m.cfg.Log.Info("a migration to Standard load balancers is to be taken back: the lead is given up, and the next leader begins with that", "by", requests.Stop.By, "at", requests.Stop.At)
			m.cfg.EndLead()
			return
		case requests.Run != nil:
			m.cfg.Log.Info("a migration to Standard load balancers was requested: leadership is released, and the next leader starts with it", "by", requests.Run.By, "at", requests.Run.At)
			m.cfg.EndLead()
			return
		}
		_ = ratelimit.Sleep(ctx, requestPollInterval)
	}
}
