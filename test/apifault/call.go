// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"net/http"
	"strings"
	"time"
)

// Request identifies a Kubernetes API request.
type Request struct {
	// Verb is get, list, watch, create, update, patch or delete.
	Verb string
	// Resource is the plural name with subresource, such as backendpools/status, or a non-resource
	// path.
	Resource        string
	Namespace, Name string
}

// Call is a request as seen by client and server.
type Call struct {
	Request

	At     time.Time
	Method string
	// Path includes the query.
	Path string
	// Number numbers the calls of this Request from 1.
	Number int
	// Body is the client's request body.
	Body []byte
	// Status is the client's response status, 0 if none.
	Status int
	// ServerStatus is the kube-apiserver's response status, 0 if it did not get the request.
	ServerStatus int
}

// Reached reports whether the kube-apiserver got the call.
func (c Call) Reached() bool { return c.ServerStatus != 0 }

var verbByMethod = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create",
	http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// parseRequest parses method and path like the API server.
func parseRequest(r *http.Request) Request {
	req := Request{Verb: verbByMethod[r.Method], Resource: r.URL.Path}
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

// matchesPattern compares the nonempty fields of the pattern.
func (r Request) matchesPattern(pattern Request) bool {
	equal := func(got, want string) bool { return want == "" || got == want }
	return equal(r.Verb, pattern.Verb) && equal(r.Resource, pattern.Resource) &&
		equal(r.Namespace, pattern.Namespace) && equal(r.Name, pattern.Name)
}

// MatchingCalls returns the matching calls in order. The empty Request matches all.
func (p *Proxy) MatchingCalls(pattern Request) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Call
	for _, c := range p.calls {
		if c.matchesPattern(pattern) {
			out = append(out, *c)
		}
	}
	return out
}

// CountCalls returns how many matching calls the client sent, and how many reached the kube-apiserver.
func (p *Proxy) CountCalls(pattern Request) (sent, reached int) {
	for _, c := range p.MatchingCalls(pattern) {
		sent++
		if c.Reached() {
			reached++
		}
	}
	return sent, reached
}

// Forget clears the log.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

func (p *Proxy) recordCall(r *http.Request, body []byte) *Call {
	c := &Call{Request: parseRequest(r), At: time.Now(), Method: r.Method, Path: r.URL.RequestURI(), Number: 1, Body: body}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, earlier := range p.calls {
		if earlier.Request == c.Request {
			c.Number++
		}
	}
	p.calls = append(p.calls, c)
	return c
}

func (p *Proxy) recordStatus(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
}
