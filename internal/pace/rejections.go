// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"maps"
	"sync"
	"time"
)

// What Azure rejects of an object is tried again after a pause that doubles.
const (
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
	// forgetAfter is how long a rejection counts after its pause, and how long a namespace is written apart after
	// its last one.
	forgetAfter = 5 * time.Minute
)

// A namespace may have so many rejected writes at once, and one more each rejectedEvery.
const (
	maxRejected   = 24
	rejectedEvery = 5 * time.Second
)

// maxObjects bounds the objects that are remembered: tenants choose their names.
const maxObjects = 20_000

// maxWidth is the highest number of Services in one write.
const maxWidth = 128

// Rejections remember what Azure rejected, for each object and for each namespace. An object is known by its name:
// one that is created again has the pause of its predecessor. The zero value remembers nothing. Its methods may be
// called from any goroutine.
type Rejections struct {
	mu         sync.Mutex
	objects    map[string]*rejection
	namespaces map[string]*strikes
	swept      time.Time
}

// rejection is that of an object.
type rejection struct {
	spec  string // its fingerprint
	err   error
	times int
	until time.Time
	// early is true if it was tried before its pause was over.
	early bool
}

// strikes are the rejected writes of a namespace.
type strikes struct {
	left bucket
	last time.Time
	// width is how many of its Services are written together: half after a rejection, twice that after a success, and
	// with time. So the Services that Azure rejects are found one after the other, without a search that others wait
	// for. narrowed is when it was halved last.
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
			return // their namespaces have few rejected writes left
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

// Accept forgets the rejections of an object.
func (r *Rejections) Accept(object string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, object)
}

// Strike counts a rejected write for so many Services of a namespace; 0 if nothing follows for those that Azure has
// not rejected before.
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

// Pass counts a write for Services of a namespace that Azure accepted.
func (r *Rejections) Pass(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.namespaces[namespace]; s != nil {
		s.width = min(2*s.width, maxWidth)
	}
}

// Suspect returns how many Services of a namespace may be written together, and how many of its writes may still be
// rejected: its Services are written apart from all others. It returns false for a namespace without rejections.
func (r *Rejections) Suspect(namespace string, now time.Time) (width, left int, suspect bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.namespaces[namespace]
	if !s.recent(now) {
		return 0, 0, false
	}
	return s.widthAt(now), int(s.left.leftAt(now)), true
}

// Object returns until when an object waits, and its last rejection; spec is the fingerprint of its spec. Once in each
// pause another spec is tried at once: it is usually the correction. If Azure rejects that, too, the object waits,
// whatever its spec.
func (r *Rejections) Object(object string, spec func() string, now time.Time) (until time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.objects[object]
	if was == nil || !was.until.After(now) || !was.early && was.spec != spec() {
		return time.Time{}, nil
	}
	return was.until, was.err
}

// Rejected reports whether Azure has rejected an object lately.
func (r *Rejections) Rejected(object string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[object] != nil
}

// Namespace returns until when a namespace has no rejected write left; zero if it has one.
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

// sweep forgets what is long ago, once a slot. The caller holds the lock.
func (r *Rejections) sweep(now time.Time) {
	if now.Sub(r.swept) < slotLasts {
		return
	}
	r.swept = now
	maps.DeleteFunc(r.objects, func(_ string, o *rejection) bool { return now.Sub(o.until) > forgetAfter })
	maps.DeleteFunc(r.namespaces, func(_ string, s *strikes) bool { return !s.recent(now) })
}
