// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Fault is an injected failure of matching requests. Empty fields match all.
type Fault struct {
	// Client, Verb, Resource (services, services/status), Namespace and Name select requests. The
	// Verb of a watch is watch, whatever its events.
	Client, Verb, Resource, Namespace, Name string
	// Times limits the number of requests; 0 is unlimited.
	Times int

	// Latency delays a request.
	Latency time.Duration
	// Late delays the events of a watch; Events selects ADDED, MODIFIED or DELETED. Order is
	// preserved.
	Late   time.Duration
	Events []watch.EventType
	// Status rejects requests with 409, 429, 500, 503 or 504. RetryAfter is in whole seconds.
	Status     int
	RetryAfter time.Duration
	// LoseAnswer breaks the connection after the request was processed.
	LoseAnswer bool
	// Hang blocks requests until the client gives up; they are not processed.
	Hang bool
	// Away refuses connections.
	Away bool
}

// Inject adds a fault. The returned function removes it.
func (s *Server) Inject(f Fault) (end func()) {
	rule := &f
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, rule)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(rule)
	}
}

func (s *Server) drop(rule *Fault) {
	for i, f := range s.faults {
		if f == rule {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return
		}
	}
}

// BreakWatches resets the connections of a client's watches of a resource; empty matches all. It
// returns their number.
func (s *Server) BreakWatches(client, resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breakWatches(chosen(client, resource), errReset)
}

// ExpireWatches ends watches with 410 Expired. Clients have to list again and miss changes in
// between.
func (s *Server) ExpireWatches(client, resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breakWatches(chosen(client, resource), expired(s.version, s.version))
}

// Compact drops the past events of a resource; empty is all. Running watches continue unless they
// are behind.
func (s *Server) Compact(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, st := range s.stores {
		if resource == "" || k.resource == resource {
			st.forget(len(st.events))
			st.since = s.version
		}
	}
}

func chosen(client, resource string) func(*watcher) bool {
	return func(w *watcher) bool {
		return (client == "" || client == w.r.client) && (resource == "" || resource == w.r.kind.resource)
	}
}

func (f *Fault) meant(r *request) bool {
	return (f.Client == "" || f.Client == r.client) && (f.Verb == "" || f.Verb == r.verb) &&
		(f.Resource == "" || f.Resource == r.resource()) &&
		(f.Namespace == "" || f.Namespace == r.namespace) && (f.Name == "" || f.Name == r.name)
}

// hinder applies delays and returns the injected error, if any.
func (s *Server) hinder(ctx context.Context, r *request) error {
	var latency time.Duration
	var refusal *Fault
	s.mu.Lock()
	closed := s.closed
	for _, f := range append([]*Fault(nil), s.faults...) {
		if !f.meant(r) || f.LoseAnswer || f.Late > 0 {
			continue
		}
		latency += f.Latency
		if refusal == nil && (f.Status != 0 || f.Hang || f.Away) {
			refusal = f
		}
		s.used(f)
	}
	s.mu.Unlock()
	if closed || refusal != nil && refusal.Away {
		return errRefused
	}
	if latency > 0 {
		if err := pause(ctx, latency); err != nil {
			return err
		}
	}
	switch {
	case refusal == nil:
		return ctx.Err()
	case refusal.Hang:
		<-ctx.Done()
		return ctx.Err()
	}
	return refusal.refuses(r)
}

// used counts a match and removes an exhausted fault.
func (s *Server) used(f *Fault) {
	if f.Times == 0 {
		return
	}
	if f.Times--; f.Times == 0 {
		s.drop(f)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errFault = errors.New("a fault that was asked for")

// refuses returns the API server's error for the fault.
func (f *Fault) refuses(r *request) error {
	seconds := int(f.RetryAfter / time.Second)
	resource := schema.GroupResource{Resource: r.resource()}
	switch f.Status {
	case http.StatusConflict:
		return apierrors.NewConflict(resource, r.name, errModified)
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests("the server has received too many requests and has asked us to try again later", seconds)
	case http.StatusGatewayTimeout:
		return apierrors.NewTimeoutError("request did not complete within requested timeout", seconds)
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errFault)
	case http.StatusServiceUnavailable:
		return apierrors.NewServiceUnavailable(errFault.Error())
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(f.Status), Message: errFault.Error()}} //nolint:gosec // an HTTP status
}

// losesAnswer reports whether the response is to be dropped.
func (s *Server) losesAnswer(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.LoseAnswer && f.meant(r) {
			s.used(f)
			return true
		}
	}
	return false
}

// late returns the delay of a watch event. Requires the lock.
func (s *Server) late(r *request, kind watch.EventType) time.Duration {
	var d time.Duration
	for _, f := range s.faults {
		if f.Late > 0 && f.meant(r) && f.about(kind) {
			d += f.Late
		}
	}
	return d
}

func (f *Fault) about(kind watch.EventType) bool {
	for _, k := range f.Events {
		if k == kind {
			return true
		}
	}
	return len(f.Events) == 0
}
