// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/sleep"
)

const (
	lookAgainAfter = 5 * time.Second
	settles        = time.Second
	overdue        = 10 * time.Minute
)

// again applies without a Retry-After.
var again = backoff.Doubling{First: 5 * time.Second, Max: time.Minute}

// Migration migrates the Basic load balancers of a cluster to Standard. Use it for one Run.
type Migration struct {
	cfg Config

	journal migrate.Journal
	phase   migrate.Phase
	// apart is true once a machine has left its pools, or later. mustComplete is true if that is so
	// or unknown.
	apart, began bool
	asked, over  bool
	// unread is true if Azure could not be read at the start.
	unread  bool
	found   bool
	heard   *migrate.Wish
	said    map[string]bool
	telling telling
	before  before
	mu      sync.Mutex // guards the following fields while writes run
	// level are instances that matched their model when this process wrote it, by scale set;
	// waitingSince is when the wait for their upgrade started.
	level  map[string]map[string]bool
	waited map[string]time.Time
	// refused are the errors of load balancer writes in this round.
	refused map[lb.LoadBalancerKey]error
}

// New returns a Migration.
func New(cfg Config) *Migration {
	return &Migration{
		cfg: cfg, telling: telling{keep: cfg.Say, log: cfg.Log}, said: map[string]bool{}, before: newBefore(),
		level: map[string]map[string]bool{}, waited: map[string]time.Time{},
	}
}

// Run returns when each address is in its place, the preflight blocks the migration, Azure rejects
// it before any change, or ctx is done.
func (m *Migration) Run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		wait, err := m.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && wait == 0 && m.answered(ctx):
			return
		case err == nil:
			failures, wait = 0, max(wait, settles)
		case m.givesUp(err):
			m.unread = fault.From(err).Exhausted()
			m.cfg.Log.Error(givenUp(m.journal.Open(), m.unread), "phase", m.phase, "err", err)
			m.telling.says(ctx, migrate.Tell(migrate.GivenUp, err.Error()))
			m.answered(ctx)
			return
		default:
			failures++
			wait = again.After(failures)
			if f := fault.From(err); f != nil && !f.RetryAt.IsZero() {
				wait = max(time.Until(f.RetryAt), time.Second)
			}
			m.cfg.Log.Warn("migration to Standard load balancers: tried again", "phase", m.phase, "after", wait, "err", err)
			m.telling.trying(ctx, m.phase, err)
		}
		_ = sleep.For(ctx, wait)
	}
}

// givesUp is true if Azure rejects the migration before a machine has left. An unreachable Azure
// has not rejected anything.
func (m *Migration) givesUp(err error) bool {
	f, azure := errors.AsType[*fault.Fault](err)
	return azure && f.Class == fault.Terminal && !m.began && (!m.journal.Open() || !f.Exhausted())
}

func givenUp(open, unread bool) string {
	switch {
	case open:
		return "load balancers stay Basic until Weir starts again"
	case unread:
		return "whether a load balancer of the cluster is Basic could not be read: all else goes on, and it is looked again once Azure answers"
	}
	return "whether a load balancer of the cluster is Basic could not be read: none is migrated until Weir starts again"
}

// round returns the delay before the next one; zero ends the migration.
func (m *Migration) round(ctx context.Context) (time.Duration, error) {
	stored, requests, err := m.cfg.Store.Read(ctx)
	if errors.Is(err, migrate.ErrUnreadable) {
		return 0, m.unreadable(ctx, err)
	}
	m.over, m.asked = false, err == nil && requests.Run != nil
	m.cfg.Owed.set(stored, requests)
	if err != nil {
		return 0, err
	}
	if !stored.Open() && !m.begins(stored, requests) {
		m.telling.unseen(ctx, stored, m.cfg.Hears)
		return 0, nil
	}
	m.journal, m.began = stored, m.began || stored.Open()
	undoes := requests.Stop != nil && requests.Stop.Undo && stored.Open()
	if requests.Stop != nil && !undoes && (stored.Open() || m.found) {
		return m.waits(ctx, stored, *requests.Stop)
	}
	if err := m.strange(stored); err != nil {
		if !stored.Apart {
			m.cfg.Log.Error("load balancers stay as they are", "err", err)
			m.telling.says(ctx, migrate.Tell(migrate.GivenUp, err.Error()))
			return 0, nil
		}
		return 0, err
	}
	services := m.cfg.Services()
	snapshot, err := m.read(ctx, stored, services)
	if err != nil {
		return 0, err
	}
	if undoes {
		return m.undo(ctx, stored, snapshot, services, *requests.Stop)
	}
	m.began = m.apart || stored.Open() && stored.Apart || stored.Gone(snapshot)
	j := migrate.Stock(stored, snapshot, services, m.cfg.Location)
	if m.over = !j.Open(); m.over {
		m.telling.says(ctx, migrate.Tell(migrate.NotNeeded))
		return 0, nil
	}
	if !m.began {
		if stops, err := m.stopped(ctx, j, snapshot, services); err != nil || stops {
			return 0, err
		}
	}
	if m.found = true; requests.Stop != nil {
		return m.waits(ctx, stored, *requests.Stop)
	}
	m.goesOn()
	if err := m.keep(ctx, stored, j); err != nil {
		return 0, err
	}
	if !stored.Open() {
		m.tellBegin(j, snapshot, services)
	}
	return m.step(ctx, j, snapshot, services)
}

// stopped logs the findings, and reports whether any blocks the migration.
func (m *Migration) stopped(ctx context.Context, j migrate.Journal, snapshot migrate.Seen, services []migrate.Service) (stops bool, err error) {
	found, err := m.before.preflight(ctx, m.cfg, j, snapshot, services)
	if err != nil {
		return false, err
	}
	var reasons []string
	for _, f := range found {
		if f.Stops {
			stops, reasons = true, append(reasons, f.Reason+": "+f.What)
		}
		switch {
		case m.said[f.What]: // already logged
		case f.Stops:
			m.cfg.Log.Error("load balancers stay Basic: "+f.What, "reason", f.Reason)
		default:
			m.cfg.Log.Warn("migration to Standard load balancers: "+f.What, "reason", f.Reason)
		}
		m.said[f.What] = true
	}
	if stops {
		m.telling.says(ctx, migrate.Tell(migrate.Refused, reasons...))
	}
	return stops, nil
}

func (m *Migration) step(ctx context.Context, j migrate.Journal, snapshot migrate.Seen, services []migrate.Service) (time.Duration, error) {
	s := migrate.Next(j, snapshot)
	of := len(migrate.Phases()) - 1 // the last step is Verify, or Done if every address is in its place
	at := min(slices.Index(migrate.Phases(), s.Phase)+1, of)
	if s.Phase != m.phase {
		m.phase = s.Phase
		m.cfg.Log.Info("migration to Standard load balancers", "phase", s.Phase, "step", at, "of", of, "addresses", addresses(j))
	}
	switch s.Phase {
	case migrate.Verify: // nothing restores them, and everything else is waiting
		for _, reason := range s.Stops {
			m.cfg.Log.Error("after the migration an address is not where it was: " + reason)
		}
		return 0, m.end(ctx, j, snapshot, services)
	case migrate.Done:
		return 0, m.end(ctx, j, snapshot, services)
	}
	show(ctx, m.cfg, j, snapshot, services, fmt.Sprintf("step %d of %d, %s", at, of, s.Phase))
	if len(s.Stops) > 0 && !m.began {
		for _, reason := range s.Stops {
			m.cfg.Log.Error("load balancers stay Basic: "+reason, "phase", s.Phase)
		}
		m.telling.says(ctx, migrate.Tell(migrate.Refused, s.Stops...))
		return 0, nil
	}
	m.telling.step(ctx, s)
	for _, reason := range slices.Concat(s.Stops, s.Waits) {
		m.cfg.Log.Info("migration to Standard load balancers waits: "+reason, "phase", s.Phase)
	}
	if ready, err := m.ready(ctx, j, j.Before(s, snapshot)); err != nil || !ready {
		return settles, err
	}
	if err := m.carryOut(ctx, s, snapshot); err != nil {
		return 0, err
	}
	if len(s.Stops)+len(s.Waits) > 0 {
		return lookAgainAfter, nil
	}
	return settles, nil
}

// carryOut records that Services are unreachable before addresses are freed, and once a machine has
// left.
func (m *Migration) carryOut(ctx context.Context, s migrate.Steps, snapshot migrate.Seen) error {
	m.apart = m.apart || s.Phase != migrate.Static && s.Phase != migrate.Detach
	if err := m.keepApart(ctx); err != nil {
		return err
	}
	err := m.write(ctx, s)
	if failed := m.keepApart(ctx); failed != nil {
		return failed
	}
	return m.noteRefused(ctx, s, snapshot, err)
}

// noteRefused records rejected addresses, so that the others are created first. It returns other
// errors.
func (m *Migration) noteRefused(ctx context.Context, s migrate.Steps, snapshot migrate.Seen, err error) error {
	for _, b := range s.Put {
		refused := m.refused[b.ID.Key()]
		f := fault.From(refused)
		if f == nil || f.Class != fault.Terminal || f.Exhausted() {
			continue
		}
		j, changed := m.journal.Refuse(b.ID, snapshot, f.Code, f.Message, time.Now())
		if !changed {
			continue
		}
		if text := f.Error(); !m.said[text] {
			m.cfg.Log.Warn("an address is refused: the others are made first, and it is asked for again", "loadBalancer", b.ID.Name, "err", f)
			m.said[text] = true
		}
		if err := m.keep(ctx, m.journal, j); err != nil {
			return err
		}
		if errors.Is(err, refused) {
			err = nil
		}
	}
	return err
}

func (m *Migration) end(ctx context.Context, j migrate.Journal, snapshot migrate.Seen, services []migrate.Service) error {
	done := j
	done.Done = true
	if err := m.keep(ctx, j, done); err != nil {
		return err
	}
	m.over = true
	m.cfg.Owed.set(done, migrate.Asked{})
	m.telling.says(ctx, migrate.Tell(migrate.Ended))
	m.tellEnd(j, snapshot, services)
	m.cfg.Log.Info("migration to Standard load balancers has ended", "addresses", addresses(j))
	return nil
}

func addresses(j migrate.Journal) (n int) {
	for _, b := range j.Balancers {
		n += len(b.Addresses)
	}
	return n
}

func (m *Migration) ours(id lb.LoadBalancerID) bool {
	return slices.ContainsFunc(m.cfg.Balancers, func(of lb.LoadBalancerID) bool { return of.Key() == id.Key() })
}
