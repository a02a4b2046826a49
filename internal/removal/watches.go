// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// StaleTimeout is how long no member leaves its pool because watches are broken.
	StaleTimeout = 2 * time.Minute
	// rewatch is how long a watch may be away that is made anew as usual: the API server ends each
	// after some minutes.
	rewatch = time.Second
	// catchesUp is how long watches that are back take to deliver what has changed meanwhile.
	catchesUp = 2 * time.Second
)

// Watches decides whether what is known of the cluster may be older than what is true: from when a
// watch is broken until all are back and have caught up. An endpoint or a node that was removed then may
// be there again, so no member leaves its pool because of it. That ends after StaleTimeout in any case.
// The zero value is ready. Its methods may be called from any goroutine.
type Watches struct {
	mu sync.Mutex
	// kinds are those that were watched once.
	kinds map[string]*watch
	// since is when the first watch broke; zero if all are in sync. backAt is when the last came back.
	since, backAt time.Time
}

// watch is how a kind is watched.
type watch struct {
	// streams counts those that are open, and lostAt is when the last one ended.
	streams int
	lostAt  time.Time
}

// Begins notes that a kind is watched, and that its store holds what there was when the watch began.
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

// Ends notes that a watch which has begun is over.
func (w *Watches) Ends(kind string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge(now)
	k := w.kinds[kind]
	if k.streams--; k.streams == 0 {
		k.lostAt = now
	}
}

// Stale reports whether what is known of the cluster may be old.
func (w *Watches) Stale(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge(now)
	return !w.since.IsZero() && now.Sub(w.since) < StaleTimeout
}

// InSync reports whether all watches are there. After StaleTimeout they may not be.
func (w *Watches) InSync() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.areBack()
}

// judge notes since when a watch is broken, and when all have caught up. The caller holds w.mu.
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

// areBack reports whether each kind is watched. The caller holds w.mu.
func (w *Watches) areBack() bool {
	for _, k := range w.kinds {
		if k.streams == 0 {
			return false
		}
	}
	return true
}
