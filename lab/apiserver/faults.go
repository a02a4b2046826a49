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
	// Client, Verb, Resource (services, services/status), Namespace and Name select requests.
	Client, Verb, Resource, Namespace, Name string
	// Times limits the number of requests; 0 is unlimited.
	Times int

	// Latency delays a request.
	Latency time.Duration
	// EventDelay delays a watch's Events (ADDED, MODIFIED or DELETED) in order.
	EventDelay time.Duration
	Events     []watch.EventType
	// Status is 409, 429, 500, 503 or 504. RetryAfter is in whole seconds.
	Status     int
	RetryAfter time.Duration
	// DropResponse breaks the connection after processing.
	DropResponse bool
	// Hang blocks requests, unprocessed, until the client gives up.
	Hang bool
	// Unreachable refuses connections.
	Unreachable bool
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
		s.removeFault(rule)
	}
}

func (s *Server) removeFault(rule *Fault) {
	for i, f := range s.faults {
		if f == rule {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return
		}
	}
}

// BreakWatches resets a client's watches of a resource and returns their number; empty matches all.
func (s *Server) BreakWatches(client, resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breakWatches(watchFilter(client, resource), errReset)
}

// ExpireWatches ends watches with 410 Expired. Clients have to list again.
func (s *Server) ExpireWatches(client, resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breakWatches(watchFilter(client, resource), expiredError(s.version, s.version))
}

// Compact drops the past events of a resource; empty is all.
func (s *Server) Compact(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, st := range s.stores {
		if resource == "" || k.resource == resource {
			st.dropEvents(len(st.events))
			st.since = s.version
		}
	}
}

func watchFilter(client, resource string) func(*watcher) bool {
	return func(w *watcher) bool {
		return (client == "" || client == w.r.client) && (resource == "" || resource == w.r.kind.resource)
	}
}

func (f *Fault) matchesRequest(r *request) bool {
	return (f.Client == "" || f.Client == r.client) && (f.Verb == "" || f.Verb == r.verb) &&
		(f.Resource == "" || f.Resource == r.resourceName()) &&
		(f.Namespace == "" || f.Namespace == r.namespace) && (f.Name == "" || f.Name == r.name)
}

func (s *Server) applyFaults(ctx context.Context, r *request) error {
	var latency time.Duration
	var rejection *Fault
	s.mu.Lock()
	closed := s.closed
	for _, f := range append([]*Fault(nil), s.faults...) {
		if !f.matchesRequest(r) || f.DropResponse || f.EventDelay > 0 {
			continue
		}
		latency += f.Latency
		if rejection == nil && (f.Status != 0 || f.Hang || f.Unreachable) {
			rejection = f
		}
		s.countFault(f)
	}
	s.mu.Unlock()
	if closed || rejection != nil && rejection.Unreachable {
		return errRefused
	}
	if latency > 0 {
		if err := sleepContext(ctx, latency); err != nil {
			return err
		}
	}
	switch {
	case rejection == nil:
		return ctx.Err()
	case rejection.Hang:
		<-ctx.Done()
		return ctx.Err()
	}
	return rejection.toError(r)
}

func (s *Server) countFault(f *Fault) {
	if f.Times == 0 {
		return
	}
	if f.Times--; f.Times == 0 {
		s.removeFault(f)
	}
}

func sleepContext(ctx context.Context, d time.Duration) error {
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

func (f *Fault) toError(r *request) error {
	seconds := int(f.RetryAfter / time.Second)
	resource := schema.GroupResource{Resource: r.resourceName()}
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

func (s *Server) dropsResponse(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.DropResponse && f.matchesRequest(r) {
			s.countFault(f)
			return true
		}
	}
	return false
}

// eventDelay is the delay of a watch event. Requires the lock.
func (s *Server) eventDelay(r *request, kind watch.EventType) time.Duration {
	var d time.Duration
	for _, f := range s.faults {
		if f.EventDelay > 0 && f.matchesRequest(r) && f.matchesEvent(kind) {
			d += f.EventDelay
		}
	}
	return d
}

func (f *Fault) matchesEvent(kind watch.EventType) bool {
	for _, k := range f.Events {
		if k == kind {
			return true
		}
	}
	return len(f.Events) == 0
}
