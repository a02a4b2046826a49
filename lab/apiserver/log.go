// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"time"
)

// Request is one that was answered, or was not.
type Request struct {
	At              time.Time
	Client, Verb    string
	Resource        string // and the subresource: services/status
	Namespace, Name string
	// Status is the HTTP status; 0 if the client got no answer.
	Status int
	// Why is what the answer said that was no success.
	Why string
}

// String is a line of the log.
func (r Request) String() string {
	where := r.Resource
	switch {
	case r.Namespace != "" && r.Name != "":
		where += " " + r.Namespace + "/" + r.Name
	case r.Namespace+r.Name != "":
		where += " " + r.Namespace + r.Name
	}
	line := fmt.Sprintf("%s %s %s %s: %d", r.At.Format("15:04:05.000"), r.Client, r.Verb, where, r.Status)
	if r.Why != "" {
		line += " " + r.Why
	}
	return line
}

// Log returns the requests so far, in the order of their answers. A watch stands where it began.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *Server) note(r *request, status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(r, status, err)
}

// noteLocked is note with the lock held.
func (s *Server) noteLocked(r *request, status int, err error) {
	e := Request{At: time.Now(), Client: r.client, Verb: r.verb, Resource: r.resource(), Namespace: r.namespace, Name: r.name, Status: status}
	if err != nil {
		e.Why = err.Error()
	}
	s.log = append(s.log, e)
}
