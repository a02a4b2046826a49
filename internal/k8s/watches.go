// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// memberKinds affect pool members.
var memberKinds = []string{"endpointslices", "services", "nodes", "backendpools"}

// initialEventsEnd ends the initial list of a streaming watch, in JSON and Protobuf. The informer
// replaces its store then.
var initialEventsEnd = []byte("k8s.io/initial-events-end")

type untrackedKey struct{}

// untrackedTransport marks requests of caches that decide no pool members.
type untrackedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u untrackedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return u.RoundTripper.RoundTrip(req.WithContext(context.WithValue(req.Context(), untrackedKey{}, true)))
}

// UntrackedClient returns a client with watches that do not count in Connection.Watches: an open one would hide that the
// watch of the same kind that decides pool members is broken.
func UntrackedClient(c *http.Client) *http.Client {
	untracked := *c
	untracked.Transport = untrackedTransport{c.Transport}
	return &untracked
}

func (r *Connection) trackWatch(req *http.Request, res *http.Response) {
	query := req.URL.Query()
	kind := path.Base(req.URL.Path)
	isWatch := req.Method == http.MethodGet && res.StatusCode == http.StatusOK && slices.Contains([]string{"true", "1"}, query.Get("watch")) &&
		slices.Contains(memberKinds, kind) && !strings.Contains(req.URL.Path, "/namespaces/") && req.Context().Value(untrackedKey{}) == nil
	if !isWatch {
		return
	}
	s := &watchBody{ReadCloser: res.Body, kind: kind, watches: &r.Watches, listing: query.Get("sendInitialEvents") == "true"}
	res.Body = s
	if !s.listing {
		s.markStarted()
	}
}

type watchBody struct {
	io.ReadCloser
	kind    string
	watches *Watches
	listing bool
	// tail holds the previous bytes, in which the mark may start.
	tail []byte

	mu             sync.Mutex
	started, ended bool
}

func (s *watchBody) markStarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && !s.started {
		s.started = true
		s.watches.RecordOpen(s.kind, time.Now())
	}
}

func (s *watchBody) markEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started && !s.ended {
		s.watches.RecordClose(s.kind, time.Now())
	}
	s.ended = true
}

func (s *watchBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.listing && n > 0 {
		seen := slices.Concat(s.tail, p[:n])
		if bytes.Contains(seen, initialEventsEnd) {
			s.listing, s.tail = false, nil
			s.markStarted()
		} else {
			s.tail = slices.Clone(seen[max(0, len(seen)-len(initialEventsEnd)+1):])
		}
	}
	if err != nil {
		s.markEnded()
	}
	return n, err
}

func (s *watchBody) Close() error {
	s.markEnded()
	return s.ReadCloser.Close()
}
