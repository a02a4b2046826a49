// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"sync"
	"time"
)

const (
	// maxRemovals are always allowed.
	maxRemovals = 3
	// More than 1/removalRatio of all Services need confirmation.
	removalRatio = 5
	// removalWait is how long the first removal waits for others.
	removalWait = 5 * time.Second
	// removalInterval is the time within which removals count as one.
	removalInterval = time.Minute
	// removalRetryDelay is the delay while not all Services were checked.
	removalRetryDelay = time.Second
)

// ExceedsRemovalLimit reports whether n of all removals need confirmation.
func ExceedsRemovalLimit(n, total int) bool { return n > maxRemovals && n*removalRatio > total }

// removalDecision is about a Service that would lose its address. Zero is to wait for confirmation.
type removalDecision struct {
	// Allowed allows the removal now.
	Allowed bool
	// RetryAt is when to check again; zero if allowed, or if it waits for the user.
	RetryAt time.Time
	// PendingCount counts the Services that would lose their address.
	PendingCount int
}

// removalTracker holds mass removals until the user confirms: if a flag, setting or new version would release many
// addresses of Services, because they cannot be recovered from Azure. Safe for concurrent use; the zero value is ready.
type removalTracker struct {
	mu      sync.Mutex
	pending map[string]*lossState
	// allowedAt maps Services to when the removal was allowed.
	allowedAt map[string]time.Time
}

type lossState struct {
	since time.Time
	// needsUser is true once it waits for confirmation, even if others are confirmed.
	needsUser bool
	// isAllowed is true once allowed: the removal may be half done.
	isAllowed bool
}

// AddService records that a Service would lose its address.
func (t *removalTracker) AddService(service string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending, t.allowedAt = map[string]*lossState{}, map[string]time.Time{}
	}
	if t.pending[service] == nil {
		t.pending[service] = &lossState{since: now}
	}
}

// RemoveService records that a Service would keep its address, or that the user requested the removal.
func (t *removalTracker) RemoveService(service string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, service)
}

// CheckService decides about a Service. total is the number of Services with an address, checked is true once
// each was reconciled.
func (t *removalTracker) CheckService(service string, total int, checked bool, now time.Time) removalDecision {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.pending[service]
	if l == nil {
		return removalDecision{Allowed: true}
	}
	n := t.countServices(now)
	switch {
	case l.isAllowed:
		return removalDecision{Allowed: true, PendingCount: n}
	case l.needsUser:
		return removalDecision{PendingCount: n}
	case total <= maxRemovals:
	case now.Before(l.since.Add(removalWait)):
		return removalDecision{RetryAt: l.since.Add(removalWait), PendingCount: n}
	case !checked:
		return removalDecision{RetryAt: now.Add(removalRetryDelay), PendingCount: n}
	case ExceedsRemovalLimit(n, total):
		l.needsUser = true
		return removalDecision{PendingCount: n}
	}
	l.isAllowed, t.allowedAt[service] = true, now
	return removalDecision{Allowed: true, PendingCount: n}
}

// countServices includes recent removals, and requires t.mu.
func (t *removalTracker) countServices(now time.Time) int {
	n := len(t.pending)
	for service, at := range t.allowedAt {
		switch {
		case now.Sub(at) >= removalInterval:
			delete(t.allowedAt, service)
		case t.pending[service] == nil:
			n++
		}
	}
	return n
}
