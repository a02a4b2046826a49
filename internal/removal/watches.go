// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"sync"
	"time"
)

const (
	// StaleTimeout is how long broken watches keep members in their pools.
	StaleTimeout = 2 * time.Minute
	// rewatch is the longest regular reconnect: the API server ends each watch after minutes.
	rewatch = time.Second
	// catchesUp is how long restored watches deliver missed changes.
	catchesUp = 2 * time.Second
)

// Watches decides whether the cache may be stale: from the first broken watch until all have caught
// up, but at most StaleTimeout. An endpoint removed during that time may be back. Safe for
// concurrent use; the zero value is ready.
type Watches struct {
	mu sync.Mutex
	// kinds were watched at least once.
	kinds map[string]*watch
	// When the first watch broke, or zero, and when the last one was restored.
	since, backAt time.Time
}

type watch struct {
	// streams counts open watches.
	streams int
	// lostAt is when the last one ended.
	lostAt time.Time
}

// Begins records an open watch of a kind.
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

// Ends records its end.
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

// InSync reports whether all watches are open.
func (w *Watches) InSync() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.areBack()
}

// judge updates since, and requires w.mu.
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

func (w *Watches) areBack() bool {
	for _, k := range w.kinds {
		if k.streams == 0 {
			return false
		}
	}
	return true
}
