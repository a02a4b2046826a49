// SPDX-License-Identifier: Apache-2.0

package requestlog

import (
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Call is one request to Azure Resource Manager on the wire, including retries and polls.
type Call struct {
	// At is the time of the response or of the failure. Took is in nanoseconds.
	At   time.Time     `json:"at"`
	Took time.Duration `json:"tookNanoseconds"`
	// Op is get, list, put, patch, post, delete, token, poll (of an accepted write) or result (of
	// that write).
	Op       string `json:"operation"`
	Resource string `json:"resource,omitempty"`
	// Status is 0 without a response.
	Status        int    `json:"status"`
	RequestID     string `json:"requestID,omitempty"`
	CorrelationID string `json:"correlationID,omitempty"`
	// Causes are empty for Weir's own reads.
	Causes []Cause `json:"causes,omitempty"`
}

// memorySize ignores sharing.
func (c *Call) memorySize() int {
	n := int(unsafe.Sizeof(*c)) + len(c.Op) + len(c.Resource) + len(c.RequestID) + len(c.CorrelationID)
	for i := range c.Causes {
		n += int(unsafe.Sizeof(c.Causes[i])) + len(c.Causes[i].Namespace) + len(c.Causes[i].Name)
	}
	return n
}

// Log is a ring buffer, bounded in bytes. It is safe for concurrent use.
type Log struct {
	maxBytes int

	mu sync.Mutex
	// buffer has n Calls from index first.
	buffer   []Call
	first, n int
	bytes    int
}

// New returns a Log that allocates on demand.
func New(maxBytes int) *Log { return &Log{maxBytes: maxBytes} }

// Add appends a Call and drops the oldest ones that no longer fit.
func (l *Log) Add(c Call) {
	size := c.memorySize()
	if size > l.maxBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes+size > l.maxBytes {
		oldest := &l.buffer[l.first]
		l.bytes -= oldest.memorySize()
		*oldest = Call{}
		l.first, l.n = (l.first+1)%len(l.buffer), l.n-1
	}
	if l.n == len(l.buffer) {
		l.growBuffer()
	}
	l.buffer[(l.first+l.n)%len(l.buffer)] = c
	l.n, l.bytes = l.n+1, l.bytes+size
}

// growBuffer needs l.mu.
func (l *Log) growBuffer() {
	ring := make([]Call, max(64, 2*len(l.buffer)))
	for i := range l.n {
		ring[i] = l.buffer[(l.first+i)%len(l.buffer)]
	}
	l.buffer, l.first = ring, 0
}

// Filter selects Calls. Empty fields match all.
type Filter struct {
	Since time.Time
	// Cause may have the name *, for all of its Kind.
	Cause Cause
	// Resource is a case-insensitive substring of the ARM ID.
	Resource string
	// Failed selects calls without a response or with status 400 or higher.
	Failed bool
}

// Select returns the matching Calls, oldest first.
func (l *Log) Select(f Filter) []Call {
	f.Resource = strings.ToLower(f.Resource)
	l.mu.Lock()
	defer l.mu.Unlock()
	var chosen []Call
	for i := range l.n {
		if c := &l.buffer[(l.first+i)%len(l.buffer)]; f.matchesCall(c) {
			chosen = append(chosen, *c)
		}
	}
	return chosen
}

func (f *Filter) matchesCall(c *Call) bool {
	switch {
	case c.At.Before(f.Since), f.Failed && c.Status > 0 && c.Status < 400:
		return false
	case f.Resource != "" && !strings.Contains(strings.ToLower(c.Resource), f.Resource):
		return false
	case f.Cause == (Cause{}):
		return true
	}
	for i := range c.Causes {
		if f.matchesCause(&c.Causes[i]) {
			return true
		}
	}
	return false
}

func (f *Filter) matchesCause(c *Cause) bool {
	return f.Cause.Kind == c.Kind && (f.Cause.Name == "*" || f.Cause.Name == c.Name) && (f.Cause.Namespace == "" || f.Cause.Namespace == c.Namespace)
}
