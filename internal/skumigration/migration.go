// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/skumigration/phase"
)

const (
	pollInterval   = 5 * time.Second
	writeDelay     = time.Second
	upgradeTimeout = 10 * time.Minute
)

// retryBackoff applies without a Retry-After.
var retryBackoff = ratelimit.Exponential{Initial: 5 * time.Second, Max: time.Minute}

// Migration migrates the Basic load balancers of a cluster to Standard. Use it for one Run.
type Migration struct {
	cfg Config

	journal phase.Journal
	phase   phase.Phase
	// trafficStopped is true once a machine has left its pools, or later. mustComplete is true if that is so
	// or unknown.
	trafficStopped, mustComplete bool
	startRequested, isComplete   bool
	// readFailed is true if Azure could not be read at the start.
	readFailed bool
	foundBasic bool
	loggedStop *phase.UserRequest
	logged     map[string]bool
	progress   progressWriter
	preflight  preflightCache
	mu         sync.Mutex // guards the following fields while writes run
	// inSync are instances that matched their model when this process wrote it, by scale set;
	// waitingSince is when the wait for their upgrade started.
	inSync       map[string]map[string]bool
	waitingSince map[string]time.Time
	// putErrors are the errors of load balancer writes in this round.
	putErrors map[lb.LoadBalancerKey]error
}

// New returns a Migration.
func New(cfg Config) *Migration {
	return &Migration{
		cfg: cfg, progress: progressWriter{save: cfg.SaveProgress, log: cfg.Log}, logged: map[string]bool{}, preflight: newPreflightCache(),
		inSync: map[string]map[string]bool{}, waitingSince: map[string]time.Time{},
	}
}

// Run returns when each address is in its place, the preflight blocks the migration, Azure rejects
// it before any change, or ctx is done.
func (m *Migration) Run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		wait, err := m.runOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && wait == 0 && m.clearStartRequest(ctx):
			return
		case err == nil:
			failures, wait = 0, max(wait, writeDelay)
		case m.shouldGiveUp(err):
			m.readFailed = armerror.FromError(err).HasExhaustedRetries()
			m.cfg.Log.Error(giveUpMessage(m.journal.IsOpen(), m.readFailed), "phase", m.phase, "err", err)
			m.progress.publish(ctx, phase.NewProgress(phase.ProgressFailed, err.Error()))
			m.clearStartRequest(ctx)
			return
		default:
			failures++
			wait = retryBackoff.DelayAfter(failures)
			if f := armerror.FromError(err); f != nil && !f.RetryAt.IsZero() {
				wait = max(time.Until(f.RetryAt), time.Second)
			}
			m.cfg.Log.Warn("migration to Standard load balancers: tried again", "phase", m.phase, "after", wait, "err", err)
			m.progress.publishRetry(ctx, m.phase, err)
		}
		_ = ratelimit.Sleep(ctx, wait)
	}
}

// shouldGiveUp is true if Azure rejects the migration before a machine has left. An unreachable Azure
// has not rejected anything.
func (m *Migration) shouldGiveUp(err error) bool {
	f, azure := errors.AsType[*armerror.Fault](err)
	return azure && f.Class == armerror.Terminal && !m.mustComplete && (!m.journal.IsOpen() || !f.HasExhaustedRetries())
}

func giveUpMessage(open, unread bool) string {
	switch {
	case open:
		return "load balancers remain Basic until Weir restarts"
	case unread:
		return "it could not be read whether a load balancer of the cluster is Basic: all other work continues, and it is read again when Azure responds"
	}
	return "whether a load balancer of the cluster is Basic could not be read: none is migrated until Weir starts again"
}

// runOnce returns the delay before the next one; zero ends the migration.
func (m *Migration) runOnce(ctx context.Context) (time.Duration, error) {
	stored, requests, err := m.cfg.Store.Load(ctx)
	if errors.Is(err, phase.ErrInvalidJournal) {
		return 0, m.handleInvalidJournal(ctx, err)
	}
	m.isComplete, m.startRequested = false, err == nil && requests.Run != nil
	m.cfg.Claims.update(stored, requests)
	if err != nil {
		return 0, err
	}
	if !stored.IsOpen() && !m.shouldStart(stored, requests) {
		m.progress.publishIdle(ctx, stored, m.cfg.AcceptRequests)
		return 0, nil
	}
	m.journal, m.mustComplete = stored, m.mustComplete || stored.IsOpen()
	undoes := requests.Stop != nil && requests.Stop.Undo && stored.IsOpen()
	if requests.Stop != nil && !undoes && (stored.IsOpen() || m.foundBasic) {
		return m.pauseForStop(ctx, stored, *requests.Stop)
	}
	if err := m.checkLoadBalancers(stored); err != nil {
		if !stored.TrafficStopped {
			m.cfg.Log.Error("load balancers remain unchanged", "err", err)
			m.progress.publish(ctx, phase.NewProgress(phase.ProgressFailed, err.Error()))
			return 0, nil
		}
		return 0, err
	}
	services := m.cfg.Services()
	snapshot, err := m.readSnapshot(ctx, stored, services)
	if err != nil {
		return 0, err
	}
	if undoes {
		return m.runUndo(ctx, stored, snapshot, services, *requests.Stop)
	}
	m.mustComplete = m.trafficStopped || stored.IsOpen() && stored.TrafficStopped || stored.HasDeletedLoadBalancer(snapshot)
	j := phase.BuildJournal(stored, snapshot, services, m.cfg.Location)
	if m.isComplete = !j.IsOpen(); m.isComplete {
		m.progress.publish(ctx, phase.NewProgress(phase.ProgressNotNeeded))
		return 0, nil
	}
	if !m.mustComplete {
		if stops, err := m.isBlocked(ctx, j, snapshot, services); err != nil || stops {
			return 0, err
		}
	}
	if m.foundBasic = true; requests.Stop != nil {
		return m.pauseForStop(ctx, stored, *requests.Stop)
	}
	m.logResumed()
	if err := m.saveJournal(ctx, stored, j); err != nil {
		return 0, err
	}
	if !stored.IsOpen() {
		m.recordStart(j, snapshot, services)
	}
	return m.runStep(ctx, j, snapshot, services)
}

// isBlocked logs the findings, and reports whether any blocks the migration.
func (m *Migration) isBlocked(ctx context.Context, j phase.Journal, snapshot phase.Snapshot, services []phase.Service) (stops bool, err error) {
	found, err := m.preflight.check(ctx, m.cfg, j, snapshot, services)
	if err != nil {
		return false, err
	}
	var reasons []string
	for _, f := range found {
		if f.IsBlocker {
			stops, reasons = true, append(reasons, f.Reason+": "+f.Message)
		}
		switch {
		case m.logged[f.Message]: // already logged
		case f.IsBlocker:
			m.cfg.Log.Error("load balancers remain Basic: "+f.Message, "reason", f.Reason)
		default:
			m.cfg.Log.Warn("migration to Standard load balancers: "+f.Message, "reason", f.Reason)
		}
		m.logged[f.Message] = true
	}
	if stops {
		m.progress.publish(ctx, phase.NewProgress(phase.ProgressRejected, reasons...))
	}
	return stops, nil
}

func (m *Migration) runStep(ctx context.Context, j phase.Journal, snapshot phase.Snapshot, services []phase.Service) (time.Duration, error) {
	s := phase.NextSteps(j, snapshot)
	of := len(phase.Phases()) - 1 // the last step is Verify, or Done if every address is in its place
	at := min(slices.Index(phase.Phases(), s.Phase)+1, of)
	if s.Phase != m.phase {
		m.phase = s.Phase
		m.cfg.Log.Info("migration to Standard load balancers", "phase", s.Phase, "step", at, "of", of, "addresses", countAddresses(j))
	}
	switch s.Phase {
	case phase.PhaseVerify: // nothing restores them, and everything else is waiting
		for _, reason := range s.StopReasons {
			m.cfg.Log.Error("after the migration an address is not where it was: " + reason)
		}
		return 0, m.complete(ctx, j, snapshot, services)
	case phase.PhaseDone:
		return 0, m.complete(ctx, j, snapshot, services)
	}
	updateServiceStatus(ctx, m.cfg, j, snapshot, services, fmt.Sprintf("step %d of %d, %s", at, of, s.Phase))
	if len(s.StopReasons) > 0 && !m.mustComplete {
		for _, reason := range s.StopReasons {
			m.cfg.Log.Error("load balancers remain Basic: "+reason, "phase", s.Phase)
		}
		m.progress.publish(ctx, phase.NewProgress(phase.ProgressRejected, s.StopReasons...))
		return 0, nil
	}
	m.progress.publishStep(ctx, s)
	for _, reason := range slices.Concat(s.StopReasons, s.WaitReasons) {
		m.cfg.Log.Info("migration to Standard load balancers waits: "+reason, "phase", s.Phase)
	}
	if ready, err := m.recordBefore(ctx, j, j.PrepareFor(s, snapshot)); err != nil || !ready {
		return writeDelay, err
	}
	if err := m.executeSteps(ctx, s, snapshot); err != nil {
		return 0, err
	}
	if len(s.StopReasons)+len(s.WaitReasons) > 0 {
		return pollInterval, nil
	}
	return writeDelay, nil
}

// executeSteps records that Services are unreachable before addresses are freed, and once a machine has
// left.
func (m *Migration) executeSteps(ctx context.Context, s phase.Steps, snapshot phase.Snapshot) error {
	m.trafficStopped = m.trafficStopped || s.Phase != phase.PhaseStatic && s.Phase != phase.PhaseDetach
	if err := m.saveTrafficStopped(ctx); err != nil {
		return err
	}
	err := m.writeSteps(ctx, s)
	if failed := m.saveTrafficStopped(ctx); failed != nil {
		return failed
	}
	return m.recordRejections(ctx, s, snapshot, err)
}

// recordRejections records rejected addresses, so that the others are created first. It returns other
// errors.
func (m *Migration) recordRejections(ctx context.Context, s phase.Steps, snapshot phase.Snapshot, err error) error {
	for _, b := range s.Put {
		refused := m.putErrors[b.ID.Key()]
		f := armerror.FromError(refused)
		if f == nil || f.Class != armerror.Terminal || f.HasExhaustedRetries() {
			continue
		}
		j, changed := m.journal.RecordRejection(b.ID, snapshot, f.Code, f.Message, time.Now())
		if !changed {
			continue
		}
		if text := f.Error(); !m.logged[text] {
			m.cfg.Log.Warn("an address is rejected: the others are created first, then it is requested again", "loadBalancer", b.ID.Name, "err", f)
			m.logged[text] = true
		}
		if err := m.saveJournal(ctx, m.journal, j); err != nil {
			return err
		}
		if errors.Is(err, refused) {
			err = nil
		}
	}
	return err
}

func (m *Migration) complete(ctx context.Context, j phase.Journal, snapshot phase.Snapshot, services []phase.Service) error {
	done := j
	done.Done = true
	if err := m.saveJournal(ctx, j, done); err != nil {
		return err
	}
	m.isComplete = true
	m.cfg.Claims.update(done, phase.UserRequests{})
	m.progress.publish(ctx, phase.NewProgress(phase.ProgressDone))
	m.recordCompletion(j, snapshot, services)
	m.cfg.Log.Info("migration to Standard load balancers has ended", "addresses", countAddresses(j))
	return nil
}

func countAddresses(j phase.Journal) (n int) {
	for _, b := range j.LoadBalancers {
		n += len(b.Addresses)
	}
	return n
}

func (m *Migration) isManaged(id lb.LoadBalancerID) bool {
	return slices.ContainsFunc(m.cfg.LoadBalancers, func(of lb.LoadBalancerID) bool { return of.Key() == id.Key() })
}
