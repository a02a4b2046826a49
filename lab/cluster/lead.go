// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"weir.dev/weir/internal/kube/leases"
)

// never is when a lead was renewed that is nobody's.
const never = math.MinInt64

// elapsed is how long the stage has been there.
func (s *Stage) elapsed() time.Duration { return time.Since(s.start) }

// may notes a request that never may be sent: one of a process that has ended, and a write of
// one of several that has not renewed its lead in time.
func (p *process) may(req *http.Request) {
	select {
	case <-p.ended:
		p.stage.breaks("%s has ended, and sends %s %s", p.name, req.Method, req.URL.Path)
	default:
	}
	if len(p.stage.replicas) < 2 || !needsLead(req) {
		return
	}
	deadline := leases.DefaultElection().RenewDeadline
	switch at := p.renewed.Load(); {
	case at == never:
		p.stage.breaks("%s does not lead, and sends %s %s", p.name, req.Method, req.URL.Path)
	case p.stage.elapsed()-time.Duration(at) > deadline:
		p.stage.breaks("%s sends %s %s %s after it has last renewed its lead", p.name, req.Method, req.URL.Path, p.stage.elapsed()-time.Duration(at))
	}
}

// needsLead reports whether only the leader may send a request: it changes something, and is
// neither the lead itself nor a question that is asked by POST.
func needsLead(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !isLead(req) && !strings.Contains(req.URL.Path, "/apis/authorization.k8s.io/") && !strings.Contains(req.URL.Path, "/apis/authentication.k8s.io/")
}

// isLead reports whether a request is about the lease of the lead.
func isLead(req *http.Request) bool {
	return strings.Contains(req.URL.Path, "/namespaces/"+weirNamespace+"/leases")
}

// renews notes that a process has the lead, or has given it back.
func (p *process) renews(req *http.Request, resp *http.Response, sent time.Duration) {
	if req.Method == http.MethodGet || !isLead(req) || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	if p.givesBack(req) {
		p.renewed.Store(never)
		return
	}
	p.renewed.Store(int64(sent))
}

// givesBack reports whether a renewal names nobody.
func (p *process) givesBack(req *http.Request) bool {
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	text, err := io.ReadAll(body)
	return err == nil && bytes.Contains(text, []byte(`"holderIdentity":""`))
}
