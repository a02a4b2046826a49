// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"sync"
	"time"
)

const (
	// StaleWatchTimeout is how long broken watches keep members in their pools.
	StaleWatchTimeout = 2 * time.Minute
	// watchRestartTimeout is the longest regular reconnect: the API server ends each watch after minutes.
	watchRestartTimeout = time.Second
	// watchSyncTime is how long restored watches deliver missed changes.
	watchSyncTime = 2 * time.Second
)

// Watches decides whether the cache may be stale: from the first broken watch until all have caught
// up, but at most StaleWatchTimeout. During that time an endpoint that the cache lacks may exist. Safe for
// concurrent use; the zero value is ready.
type Watches struct {
	mu sync.Mutex
	// kinds were watched at least once.
	kinds map[string]*watchState
	// When the first watch broke, or zero, and when the last one was restored.
	staleSince, openedAt time.Time
}

type watchState struct {
	// streams counts open watches.
	streams int
	// closedAt is when the last one ended.
	closedAt time.Time
}

// RecordOpen records an open watch of a kind.
func (w *Watches) RecordOpen(kind string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[kind]
	if k == nil {
		if w.kinds == nil {
			w.kinds = map[string]*watchState{}
		}
		k = &watchState{closedAt: now}
		w.kinds[kind] = k
	}
	w.updateState(now)
	if k.streams++; !w.staleSince.IsZero() {
		w.openedAt = now
	}
}

// RecordClose records its end.
func (w *Watches) RecordClose(kind string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updateState(now)
	k := w.kinds[kind]
	if k.streams--; k.streams == 0 {
		k.closedAt = now
	}
}

// IsStale reports whether the cache may be stale.
func (w *Watches) IsStale(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updateState(now)
	return !w.staleSince.IsZero() && now.Sub(w.staleSince) < StaleWatchTimeout
}

// AllOpen reports whether all watches are open.
func (w *Watches) AllOpen() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.allOpen()
}

// updateState updates staleSince. It requires w.mu.
func (w *Watches) updateState(now time.Time) {
	if !w.staleSince.IsZero() {
		if w.allOpen() && now.Sub(w.openedAt) >= watchSyncTime {
			w.staleSince = time.Time{}
		}
		return
	}
	for _, k := range w.kinds {
		if k.streams == 0 && now.Sub(k.closedAt) >= watchRestartTimeout && (w.staleSince.IsZero() || k.closedAt.Before(w.staleSince)) {
			w.staleSince = k.closedAt
		}
	}
}

func (w *Watches) allOpen() bool {
	for _, k := range w.kinds {
		if k.streams == 0 {
			return false
		}
	}
	return true
}
