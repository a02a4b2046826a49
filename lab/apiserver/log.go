// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"time"
)

// Request is a logged request.
type Request struct {
	At              time.Time
	Client, Verb    string
	Resource        string // including the subresource: services/status
	Namespace, Name string
	// Status is 0 if the client got no response.
	Status int
	// Message is the error message.
	Message string
}

// String formats a log line.
func (r Request) String() string {
	where := r.Resource
	switch {
	case r.Namespace != "" && r.Name != "":
		where += " " + r.Namespace + "/" + r.Name
	case r.Namespace+r.Name != "":
		where += " " + r.Namespace + r.Name
	}
	line := fmt.Sprintf("%s %s %s %s: %d", r.At.Format("15:04:05.000"), r.Client, r.Verb, where, r.Status)
	if r.Message != "" {
		line += " " + r.Message
	}
	return line
}

// Log returns the requests in order of their responses; a watch is logged at its start.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Server) recordRequest(r *request, status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordRequestLocked(r, status, err)
}

func (s *Server) recordRequestLocked(r *request, status int, err error) {
	e := Request{At: time.Now(), Client: r.client, Verb: r.verb, Resource: r.resourceName(), Namespace: r.namespace, Name: r.name, Status: status}
	if err != nil {
		e.Message = err.Error()
	}
	s.log = append(s.log, e)
}
