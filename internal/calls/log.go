// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Call is one request to Azure Resource Manager as it was on the wire: each retry and each poll is one.
type Call struct {
	// At is when its answer came, or when it was given up. Took is in nanoseconds.
	At   time.Time     `json:"at"`
	Took time.Duration `json:"tookNanoseconds"`
	// Op is what it was for: get, list, put, patch, post, delete, poll (an accepted write is followed),
	// result (its end), or token.
	Op string `json:"operation"`
	// Resource is the ARM id that it was about.
	Resource string `json:"resource,omitempty"`
	// Status is that of the answer; 0 if none came.
	Status int `json:"status"`
	// RequestID and CorrelationID are what Azure's support asks for.
	RequestID     string `json:"requestID,omitempty"`
	CorrelationID string `json:"correlationID,omitempty"`
	// Causes are for whom it was made; none for Weir's own sake, as a look at what there is.
	Causes []Cause `json:"causes,omitempty"`
}

// bytes is how much memory a Call takes, if it shares none.
func (c *Call) bytes() int {
	n := int(unsafe.Sizeof(*c)) + len(c.Op) + len(c.Resource) + len(c.RequestID) + len(c.CorrelationID)
	for i := range c.Causes {
		n += int(unsafe.Sizeof(c.Causes[i])) + len(c.Causes[i].Namespace) + len(c.Causes[i].Name)
	}
	return n
}

// Log keeps the last Calls, as many as fit into a number of bytes. It is safe for concurrent use.
type Log struct {
	most int

	mu sync.Mutex
	// ring has n Calls from first on, around its end.
	ring     []Call
	first, n int
	bytes    int
}

// New returns a Log that takes about most bytes, and none before the first Call.
func New(most int) *Log { return &Log{most: most} }

// Add keeps a Call, and drops the oldest ones that do not fit any more.
func (l *Log) Add(c Call) {
	size := c.bytes()
	if size > l.most {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes+size > l.most {
		oldest := &l.ring[l.first]
		l.bytes -= oldest.bytes()
		*oldest = Call{}
		l.first, l.n = (l.first+1)%len(l.ring), l.n-1
	}
	if l.n == len(l.ring) {
		l.grow()
	}
	l.ring[(l.first+l.n)%len(l.ring)] = c
	l.n, l.bytes = l.n+1, l.bytes+size
}

// grow makes room for more Calls. The caller holds l.mu.
func (l *Log) grow() {
	ring := make([]Call, max(64, 2*len(l.ring)))
	for i := range l.n {
		ring[i] = l.ring[(l.first+i)%len(l.ring)]
	}
	l.ring, l.first = ring, 0
}

// Filter chooses Calls. What is empty means all.
type Filter struct {
	Since time.Time
	// Cause chooses those made for it; Name * is all of its Kind.
	Cause Cause
	// Resource is part of an ARM id, whatever its capitals.
	Resource string
	// Failed chooses those without an answer, and those with one of 400 or more.
	Failed bool
}

// Select returns the Calls that a Filter chooses, the oldest first.
func (l *Log) Select(f Filter) []Call {
	f.Resource = strings.ToLower(f.Resource)
	l.mu.Lock()
	defer l.mu.Unlock()
	var chosen []Call
	for i := range l.n {
		if c := &l.ring[(l.first+i)%len(l.ring)]; f.chooses(c) {
			chosen = append(chosen, *c)
		}
	}
	return chosen
}

func (f *Filter) chooses(c *Call) bool {
	switch {
	case c.At.Before(f.Since), f.Failed && c.Status > 0 && c.Status < 400:
		return false
	case f.Resource != "" && !strings.Contains(strings.ToLower(c.Resource), f.Resource):
		return false
	case f.Cause == (Cause{}):
		return true
	}
	for i := range c.Causes {
		if f.names(&c.Causes[i]) {
			return true
		}
	}
	return false
}

func (f *Filter) names(c *Cause) bool {
	return f.Cause.Kind == c.Kind && (f.Cause.Name == "*" || f.Cause.Name == c.Name) && (f.Cause.Namespace == "" || f.Cause.Namespace == c.Namespace)
}
