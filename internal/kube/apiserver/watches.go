// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/removal"
)

// watchedKinds affect pool members.
var watchedKinds = []string{"endpointslices", "services", "nodes", "backendpools"}

// initialEventsEnd ends the initial list of a streaming watch, in JSON and Protobuf. The informer
// replaces its store then.
var initialEventsEnd = []byte("k8s.io/initial-events-end")

func (r *Reach) watched(req *http.Request, res *http.Response) {
	query := req.URL.Query()
	kind := path.Base(req.URL.Path)
	is := req.Method == http.MethodGet && res.StatusCode == http.StatusOK && slices.Contains([]string{"true", "1"}, query.Get("watch")) &&
		slices.Contains(watchedKinds, kind) && !strings.Contains(req.URL.Path, "/namespaces/")
	if !is {
		return
	}
	s := &stream{ReadCloser: res.Body, kind: kind, watches: &r.Watches, lists: query.Get("sendInitialEvents") == "true"}
	res.Body = s
	if !s.lists {
		s.begins()
	}
}

type stream struct {
	io.ReadCloser
	kind    string
	watches *removal.Watches
	// tail holds the previous bytes, in which the mark may start.
	lists bool
	tail  []byte

	mu          sync.Mutex
	began, over bool
}

func (s *stream) begins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over && !s.began {
		s.began = true
		s.watches.Begins(s.kind, time.Now())
	}
}

func (s *stream) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began && !s.over {
		s.watches.Ends(s.kind, time.Now())
	}
	s.over = true
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.lists && n > 0 {
		seen := slices.Concat(s.tail, p[:n])
		if bytes.Contains(seen, initialEventsEnd) {
			s.lists, s.tail = false, nil
			s.begins()
		} else {
			s.tail = slices.Clone(seen[max(0, len(seen)-len(initialEventsEnd)+1):])
		}
	}
	if err != nil {
		s.ends()
	}
	return n, err
}

func (s *stream) Close() error {
	s.ends()
	return s.ReadCloser.Close()
}
