// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Call is one request and its response, without secrets.
type Call struct {
	Seq      uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Kind     Kind      `json:"kind"`
	Resource string    `json:"resource,omitempty"` // ARM ID; for a poll, the resource that the operation writes
	// Actions are the required Azure RBAC actions, including those for referenced resources.
	Actions []string `json:"actions,omitempty"`
	// EtagBefore and EtagAfter are etags of the root resource.
	EtagBefore      string `json:"etagBefore,omitempty"`
	EtagAfter       string `json:"etagAfter,omitempty"`
	IfMatch         string `json:"ifMatch,omitempty"`
	Status          int    `json:"status"` // 0 if the connection was dropped
	ErrorCode       string `json:"errorCode,omitempty"`
	Dropped         bool   `json:"dropped,omitempty"`
	Fault           string `json:"fault,omitempty"`     // rule that fired
	Operation       string `json:"operation,omitempty"` // started or polled
	Early           string `json:"early,omitempty"`     // remaining Retry-After of this path
	ClientRequestID string `json:"clientRequestId,omitempty"`
}

// Stats counts calls since the last ClearCalls.
type Stats struct {
	Calls        int `json:"calls"`
	Reads        int `json:"reads"`
	Writes       int `json:"writes"`
	Deletes      int `json:"deletes"`
	Polls        int `json:"polls"`
	ClientErrors int `json:"clientErrors"` // 4xx, including throttled
	ServerErrors int `json:"serverErrors"`
	Throttled    int `json:"throttled"` // 429
	Conflicts    int `json:"conflicts"` // 409 and 412
	Dropped      int `json:"dropped"`
	Faults       int `json:"faults"`
	Early        int `json:"early"` // before a Retry-After
}

type callLog struct {
	limit   int // 0 retains all
	entries []Call
	seq     uint64
	stats   Stats
}

func (x *exchange) recordRequest(e *Emulator) {
	x.call.Time, x.call.Method, x.call.Path = x.now, x.req.Method, x.req.URL.EscapedPath()
	x.call.Kind, x.call.Resource = x.route.kind, x.route.resourceID()
	x.call.IfMatch = x.req.Header.Get("If-Match")
	x.call.ClientRequestID = x.req.Header.Get("x-ms-client-request-id")
	if x.route.id.root == nil || x.route.id.name == "" {
		return
	}
	if agg := e.aggregates[x.route.id.rootKey()]; agg != nil {
		x.call.EtagBefore, x.call.EtagAfter = agg.etag, agg.etag
	}
}

func (l *callLog) addCall(c Call) {
	l.seq++
	c.Seq = l.seq
	l.stats.countCall(c)
	l.entries = append(l.entries, c)
	// Trimming in blocks makes add amortized O(1).
	if l.limit > 0 && len(l.entries) >= 2*l.limit {
		l.entries = append([]Call(nil), l.entries[len(l.entries)-l.limit:]...)
	}
}

func (l *callLog) newestCalls() []Call {
	if l.limit > 0 && len(l.entries) > l.limit {
		return l.entries[len(l.entries)-l.limit:]
	}
	return l.entries
}

func (s *Stats) countCall(c Call) {
	s.Calls++
	counters := map[Kind]*int{KindGet: &s.Reads, KindList: &s.Reads, KindPut: &s.Writes, KindPatch: &s.Writes, KindAction: &s.Writes, KindDelete: &s.Deletes, KindPoll: &s.Polls}
	if n := counters[c.Kind]; n != nil {
		*n++
	}
	switch {
	case c.Status >= 500:
		s.ServerErrors++
	case c.Status >= 400:
		s.ClientErrors++
	}
	switch c.Status {
	case 429:
		s.Throttled++
	case 409, 412:
		s.Conflicts++
	}
	if c.Dropped {
		s.Dropped++
	}
	if c.Fault != "" {
		s.Faults++
	}
	if c.Early != "" {
		s.Early++
	}
}

// Calls returns a copy of the log, oldest first, filtered by all predicates.
func (e *Emulator) Calls(keep ...func(Call) bool) []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []Call
next:
	for _, c := range e.calls.newestCalls() {
		for _, k := range keep {
			if !k(c) {
				continue next
			}
		}
		out = append(out, c)
	}
	return out
}

// ByKind matches calls of these kinds.
func ByKind(kinds ...Kind) func(Call) bool {
	return func(c Call) bool {
		for _, k := range kinds {
			if c.Kind == k {
				return true
			}
		}
		return false
	}
}

// CalledSince matches calls at or after t.
func CalledSince(t time.Time) func(Call) bool { return func(c Call) bool { return !c.Time.Before(t) } }

// ClearCalls empties the log and the statistics; sequence numbers continue.
func (e *Emulator) ClearCalls() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls.entries, e.calls.stats = nil, Stats{}
}

// Stats returns the counters.
func (e *Emulator) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls.stats
}

// WriteCalls writes calls as JSON lines.
func WriteCalls(w io.Writer, calls []Call) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, c := range calls {
		if err := enc.Encode(c); err != nil {
			return fmt.Errorf("writing call %d: %w", c.Seq, err)
		}
	}
	return nil
}
