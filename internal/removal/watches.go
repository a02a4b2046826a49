// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// StaleTimeout is how long broken watches keep members in their pools.
	StaleTimeout = 2 * time.Minute
	// rewatch is how long a watch may be down during a regular reconnect: the API server ends each
	// watch after minutes.
	rewatch = time.Second
	// catchesUp is how long restored watches take to deliver missed changes.
	catchesUp = 2 * time.Second
)

// Watches decides whether the cache may be stale: from the first broken watch until all are
// restored and have caught up. An endpoint or node removed meanwhile may have returned, so no
// member leaves its pool then. This ends after StaleTimeout in any case. Safe for concurrent use;
// the zero value is ready.
type Watches struct {
	mu sync.Mutex
	// kinds are those that were watched at least once.
	kinds map[string]*watch
	// since is when the first watch broke; zero if all are in sync. backAt is when the last one was
	// restored.
	since, backAt time.Time
}

// watch is the state of a kind's watches.
type watch struct {
	// streams is the number of open watches; lostAt is when the last one ended.
	streams int
	lostAt  time.Time
}

// Begins records that a kind is watched and its store was listed.
func (w *Watches) Begins(kind string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[kind]
	if k == nil {
		if w.kinds == nil {
			w.kinds = map[string]*watch{}
		}
		k = &watch{lostAt: now}
		w.kinds[kind] = k
	}
	w.judge(now)
	if k.streams++; !w.since.IsZero() {
		w.backAt = now
	}
}

// Ends records that a watch has ended.
func (w *Watches) Ends(kind string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge(now)
	k := w.kinds[kind]
	if k.streams--; k.streams == 0 {
		k.lostAt = now
	}
}

// Stale reports whether the cache may be stale.
func (w *Watches) Stale(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge(now)
	return !w.since.IsZero() && now.Sub(w.since) < StaleTimeout
}

// InSync reports whether all watches are open, even after StaleTimeout.
func (w *Watches) InSync() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.areBack()
}

// judge updates since. The caller holds w.mu.
func (w *Watches) judge(now time.Time) {
	if !w.since.IsZero() {
		if w.areBack() && now.Sub(w.backAt) >= catchesUp {
			w.since = time.Time{}
		}
		return
	}
	for _, k := range w.kinds {
		if k.streams == 0 && now.Sub(k.lostAt) >= rewatch && (w.since.IsZero() || k.lostAt.Before(w.since)) {
			w.since = k.lostAt
		}
	}
}

// areBack reports whether every kind is watched. The caller holds w.mu.
func (w *Watches) areBack() bool {
	for _, k := range w.kinds {
		if k.streams == 0 {
			return false
		}
	}
	return true
}
