// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"maps"
	"sync"
	"time"
)

// A rejected object is retried after a doubling pause.
const (
	minRetryDelay = 5 * time.Second
	maxRetryDelay = 5 * time.Minute
	// rejectionTTL is how long a rejection counts after its pause, and a namespace is written
	// separately.
	rejectionTTL = 5 * time.Minute
)

// A namespace may cause a burst of maxRejected rejections, and one more per rejectInterval.
const (
	maxRejected    = 24
	rejectInterval = 5 * time.Second
)

// maxObjects bounds memory: tenants choose names.
const maxObjects = 20_000

const maxBatchSize = 128

// Rejections tracks rejected objects, by name, and namespaces. Safe for concurrent use; the zero
// value is ready.
type Rejections struct {
	mu         sync.Mutex
	objects    map[string]*rejection
	namespaces map[string]*namespaceRejections
	prunedAt   time.Time
}

type rejection struct {
	spec  string // fingerprint
	err   error
	count int
	until time.Time
	// retriedEarly is true if it was retried before the end of its pause.
	retriedEarly bool
}

type namespaceRejections struct {
	bucket bucket
	lastAt time.Time
	// batchSize is how many of its Services are written together: halved by a rejection, doubled by a
	// success and over time. This finds rejected Services without blocking others.
	batchSize int
	reducedAt time.Time
}

func (n *namespaceRejections) isRecent(now time.Time) bool {
	return n != nil && now.Sub(n.lastAt) < rejectionTTL
}

func (n *namespaceRejections) batchSizeAt(now time.Time) int {
	return min(maxBatchSize, n.batchSize<<min(10, max(0, now.Sub(n.reducedAt)/rejectInterval)))
}

// RecordRejection counts a rejection of an object.
func (r *Rejections) RecordRejection(object, spec string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeExpired(now)
	old := r.objects[object]
	if old == nil {
		if len(r.objects) >= maxObjects {
			return // their namespaces are limited anyway
		}
		if r.objects == nil {
			r.objects = map[string]*rejection{}
		}
		old = &rejection{}
		r.objects[object] = old
	}
	old.retriedEarly = old.until.After(now)
	old.spec, old.err, old.until = spec, err, now.Add(min(minRetryDelay<<min(old.count, 10), maxRetryDelay))
	old.count++
}

// ClearRejection drops an object's rejections.
func (r *Rejections) ClearRejection(object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, object)
}

// CountRejectedWrite counts a rejected write for width Services of a namespace; 0 if others may still be
// accepted.
func (r *Rejections) CountRejectedWrite(namespace string, width int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeExpired(now)
	s := r.namespaces[namespace]
	if !s.isRecent(now) {
		if r.namespaces == nil {
			r.namespaces = map[string]*namespaceRejections{}
		}
		s = &namespaceRejections{bucket: bucket{size: maxRejected, perSecond: 1 / rejectInterval.Seconds(), tokens: maxRejected, at: now}, batchSize: maxBatchSize, reducedAt: now}
		r.namespaces[namespace] = s
	}
	s.bucket.takeToken(now)
	if s.lastAt = now; width > 0 {
		s.batchSize, s.reducedAt = max(1, min(s.batchSizeAt(now), width)/2), now
	}
}

// CountAcceptedWrite counts an accepted write for a namespace.
func (r *Rejections) CountAcceptedWrite(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.namespaces[namespace]; s != nil {
		s.batchSize = min(2*s.batchSize, maxBatchSize)
	}
}

// BatchLimit returns the batch size and remaining rejections of a namespace that is written
// separately; false without recent rejections.
func (r *Rejections) BatchLimit(namespace string, now time.Time) (width, rest int, suspect bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.namespaces[namespace]
	if !s.isRecent(now) {
		return 0, 0, false
	}
	return s.batchSizeAt(now), int(s.bucket.tokensAt(now)), true
}

// ObjectRetryAt returns until when an object waits, and its last rejection. spec returns a fingerprint.
// Once per pause a changed spec is tried at once: it usually is the correction.
func (r *Rejections) ObjectRetryAt(object string, spec func() string, now time.Time) (until time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.objects[object]
	if old == nil || !old.until.After(now) || !old.retriedEarly && old.spec != spec() {
		return time.Time{}, nil
	}
	return old.until, old.err
}

// IsRejected reports a recent rejection of an object.
func (r *Rejections) IsRejected(object string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[object] != nil
}

// NamespaceRetryAt returns until when a namespace has no rejection left; zero if it has.
func (r *Rejections) NamespaceRetryAt(namespace string, now time.Time) (until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.namespaces[namespace]
	if !s.isRecent(now) {
		return time.Time{}
	}
	remaining := s.bucket.tokensAt(now)
	if remaining >= 1 {
		return time.Time{}
	}
	return now.Add(time.Duration((1 - remaining) * float64(rejectInterval)))
}

// removeExpired drops expired entries once per slot, and requires r.mu.
func (r *Rejections) removeExpired(now time.Time) {
	if now.Sub(r.prunedAt) < slotLength {
		return
	}
	r.prunedAt = now
	maps.DeleteFunc(r.objects, func(_ string, o *rejection) bool { return now.Sub(o.until) > rejectionTTL })
	maps.DeleteFunc(r.namespaces, func(_ string, s *namespaceRejections) bool { return !s.isRecent(now) })
}
