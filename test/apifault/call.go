// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"net/http"
	"strings"
	"time"
)

// Request is what a request is about, in the words of the Kubernetes API.
type Request struct {
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Resource is the plural with the subresource, such as backendpools/status; a path
	// that names no resource stands for itself.
	Resource        string
	Namespace, Name string
}

// Call is one request as both sides saw it.
type Call struct {
	Request

	At     time.Time
	Method string
	// Path holds the query too.
	Path string
	// Nth counts the calls with this request, from 1.
	Nth int
	// Body is what the client sent.
	Body []byte
	// Status is what the client was answered, 0 if nothing.
	Status int
	// Server is what the kube-apiserver answered, 0 if it was not asked.
	Server int
}

// Reached reports whether the kube-apiserver saw the call.
func (c Call) Reached() bool { return c.Server != 0 }

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
	http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// requestOf reads method and path as the API server does.
func requestOf(r *http.Request) Request {
	req := Request{Verb: verbs[r.Method], Resource: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:] // /api/v1
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:] // /apis/group/version
	default:
		return req
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		req.Namespace, parts = parts[1], parts[2:]
	}
	req.Resource = parts[0]
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Resource += "/" + parts[2]
	}
	if req.Verb == "get" && req.Name == "" {
		req.Verb = "list"
		if q := r.URL.Query().Get("watch"); q == "true" || q == "1" {
			req.Verb = "watch"
		}
	}
	return req
}

// matches compares what the pattern names; what it leaves empty is anything.
func (r Request) matches(pattern Request) bool {
	same := func(got, want string) bool { return want == "" || got == want }
	return same(r.Verb, pattern.Verb) && same(r.Resource, pattern.Resource) &&
		same(r.Namespace, pattern.Namespace) && same(r.Name, pattern.Name)
}

// Calls returns the calls that match, in the order in which they came. The empty
// Request matches all.
func (p *Proxy) Calls(pattern Request) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Call
	for _, c := range p.calls {
		if c.matches(pattern) {
			out = append(out, *c)
		}
	}
	return out
}

// Count returns how many of the matching calls the client sent, and how many of them
// the kube-apiserver saw.
func (p *Proxy) Count(pattern Request) (sent, reached int) {
	for _, c := range p.Calls(pattern) {
		sent++
		if c.Reached() {
			reached++
		}
	}
	return sent, reached
}

// Forget empties the log.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

func (p *Proxy) begin(r *http.Request, body []byte) *Call {
	c := &Call{Request: requestOf(r), At: time.Now(), Method: r.Method, Path: r.URL.RequestURI(), Nth: 1, Body: body}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, earlier := range p.calls {
		if earlier.Request == c.Request {
			c.Nth++
		}
	}
	p.calls = append(p.calls, c)
	return c
}

func (p *Proxy) note(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
}
