// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// MaxAllowed removals are always allowed.
	MaxAllowed = 3
	// limitRatio is the divisor above which removals need confirmation.
	limitRatio = 5
	// WaitTime is how long the first removal waits for others.
	WaitTime = 5 * time.Second
	// MergeInterval is the time within which removals count as one.
	MergeInterval = time.Minute
	// retryDelay is the delay while not all Services were checked.
	retryDelay = time.Second
)

// ExceedsLimit reports whether n of all removals need confirmation.
func ExceedsLimit(n, all int) bool { return n > MaxAllowed && n*limitRatio > all }

// Decision is about a Service that would lose its address. Zero is to wait for confirmation.
type Decision struct {
	// Allowed allows the removal now.
	Allowed bool
	// RetryAt is when to check again; zero if allowed or held.
	RetryAt time.Time
	// PendingCount counts the Services that would lose their address.
	PendingCount int
}

// Tracker tracks such Services. Safe for concurrent use; the zero value is ready.
type Tracker struct {
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
func (t *Tracker) AddService(service string, now time.Time) {
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
func (t *Tracker) RemoveService(service string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, service)
}

// CheckService decides about a Service. all is the number of Services with an address, looked is true once
// all were checked.
func (t *Tracker) CheckService(service string, all int, looked bool, now time.Time) Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.pending[service]
	if l == nil {
		return Decision{Allowed: true}
	}
	n := t.countServices(now)
	switch {
	case l.isAllowed:
		return Decision{Allowed: true, PendingCount: n}
	case l.needsUser:
		return Decision{PendingCount: n}
	case all <= MaxAllowed:
	case now.Before(l.since.Add(WaitTime)):
		return Decision{RetryAt: l.since.Add(WaitTime), PendingCount: n}
	case !looked:
		return Decision{RetryAt: now.Add(retryDelay), PendingCount: n}
	case ExceedsLimit(n, all):
		l.needsUser = true
		return Decision{PendingCount: n}
	}
	l.isAllowed, t.allowedAt[service] = true, now
	return Decision{Allowed: true, PendingCount: n}
}

// countServices includes recent removals, and requires t.mu.
func (t *Tracker) countServices(now time.Time) int {
	n := len(t.pending)
	for service, at := range t.allowedAt {
		switch {
		case now.Sub(at) >= MergeInterval:
			delete(t.allowedAt, service)
		case t.pending[service] == nil:
			n++
		}
	}
	return n
}
