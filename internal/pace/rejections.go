// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"maps"
	"sync"
	"time"
)

// A rejected object is retried after a doubling pause.
const (
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
	// forgetAfter is how long a rejection counts after its pause, and a namespace is written
	// separately.
	forgetAfter = 5 * time.Minute
)

// A namespace may cause a burst of maxRejected rejections, and one more per rejectedEvery.
const (
	maxRejected   = 24
	rejectedEvery = 5 * time.Second
)

// maxObjects bounds memory: tenants choose names.
const maxObjects = 20_000

const maxWidth = 128

// Rejections tracks rejected objects, by name, and namespaces. Safe for concurrent use; the zero
// value is ready.
type Rejections struct {
	mu         sync.Mutex
	objects    map[string]*rejection
	namespaces map[string]*strikes
	swept      time.Time
}

type rejection struct {
	spec  string // fingerprint
	err   error
	times int
	until time.Time
	// early is true if it was retried before the end of its pause.
	early bool
}

type strikes struct {
	left bucket
	last time.Time
	// width is how many of its Services are written together: halved by a rejection, doubled by a
	// success and over time. This finds rejected Services without blocking others.
	width    int
	narrowed time.Time
}

func (s *strikes) recent(now time.Time) bool { return s != nil && now.Sub(s.last) < forgetAfter }

func (s *strikes) widthAt(now time.Time) int {
	return min(maxWidth, s.width<<min(10, max(0, now.Sub(s.narrowed)/rejectedEvery)))
}

// Reject counts a rejection of an object.
func (r *Rejections) Reject(object, spec string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	was := r.objects[object]
	if was == nil {
		if len(r.objects) >= maxObjects {
			return // their namespaces are limited anyway
		}
		if r.objects == nil {
			r.objects = map[string]*rejection{}
		}
		was = &rejection{}
		r.objects[object] = was
	}
	was.early = was.until.After(now)
	was.spec, was.err, was.until = spec, err, now.Add(min(firstPause<<min(was.times, 10), maxPause))
	was.times++
}

// Accept drops an object's rejections.
func (r *Rejections) Accept(object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, object)
}

// Strike counts a rejected write for width Services of a namespace; 0 if others may still be
// accepted.
func (r *Rejections) Strike(namespace string, width int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	s := r.namespaces[namespace]
	if !s.recent(now) {
		if r.namespaces == nil {
			r.namespaces = map[string]*strikes{}
		}
		s = &strikes{left: bucket{size: maxRejected, refill: 1 / rejectedEvery.Seconds(), left: maxRejected, at: now}, width: maxWidth, narrowed: now}
		r.namespaces[namespace] = s
	}
	s.left.spend(now)
	if s.last = now; width > 0 {
		s.width, s.narrowed = max(1, min(s.widthAt(now), width)/2), now
	}
}

// Pass counts an accepted write for a namespace.
func (r *Rejections) Pass(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.namespaces[namespace]; s != nil {
		s.width = min(2*s.width, maxWidth)
	}
}

// Suspect returns the batch size and remaining rejections of a namespace that is written
// separately; false without recent rejections.
func (r *Rejections) Suspect(namespace string, now time.Time) (width, left int, suspect bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.namespaces[namespace]
	if !s.recent(now) {
		return 0, 0, false
	}
	return s.widthAt(now), int(s.left.leftAt(now)), true
}

// Object returns until when an object waits, and its last rejection. spec returns a fingerprint.
// Once per pause a changed spec is tried at once: it usually is the correction.
func (r *Rejections) Object(object string, spec func() string, now time.Time) (until time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.objects[object]
	if was == nil || !was.until.After(now) || !was.early && was.spec != spec() {
		return time.Time{}, nil
	}
	return was.until, was.err
}

// Rejected reports a recent rejection of an object.
func (r *Rejections) Rejected(object string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[object] != nil
}

// Namespace returns until when a namespace has no rejection left; zero if it has.
func (r *Rejections) Namespace(namespace string, now time.Time) (until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.namespaces[namespace]
	if !s.recent(now) {
		return time.Time{}
	}
	left := s.left.leftAt(now)
	if left >= 1 {
		return time.Time{}
	}
	return now.Add(time.Duration((1 - left) * float64(rejectedEvery)))
}

// sweep drops expired entries once per slot, and requires r.mu.
func (r *Rejections) sweep(now time.Time) {
	if now.Sub(r.swept) < slotLasts {
		return
	}
	r.swept = now
	maps.DeleteFunc(r.objects, func(_ string, o *rejection) bool { return now.Sub(o.until) > forgetAfter })
	maps.DeleteFunc(r.namespaces, func(_ string, s *strikes) bool { return !s.recent(now) })
}
