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

func (c *Connection) trackWatch(req *http.Request, res *http.Response) {
	query := req.URL.Query()
	kind := path.Base(req.URL.Path)
	isWatch := req.Method == http.MethodGet && res.StatusCode == http.StatusOK && slices.Contains([]string{"true", "1"}, query.Get("watch")) &&
		slices.Contains(memberKinds, kind) && !strings.Contains(req.URL.Path, "/namespaces/") && req.Context().Value(untrackedKey{}) == nil
	if !isWatch {
		return
	}
	s := &watchBody{ReadCloser: res.Body, kind: kind, watches: &c.Watches, listing: query.Get("sendInitialEvents") == "true"}
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

func (w *watchBody) markStarted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended && !w.started {
		w.started = true
		w.watches.RecordOpen(w.kind, time.Now())
	}
}

func (w *watchBody) markEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started && !w.ended {
		w.watches.RecordClose(w.kind, time.Now())
	}
	w.ended = true
}

func (w *watchBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if w.listing && n > 0 {
		seen := slices.Concat(w.tail, p[:n])
		if bytes.Contains(seen, initialEventsEnd) {
			w.listing, w.tail = false, nil
			w.markStarted()
		} else {
			w.tail = slices.Clone(seen[max(0, len(seen)-len(initialEventsEnd)+1):])
		}
	}
	if err != nil {
		w.markEnded()
	}
	return n, err
}

func (w *watchBody) Close() error {
	w.markEnded()
	return w.ReadCloser.Close()
}
