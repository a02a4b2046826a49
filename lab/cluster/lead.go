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

// never is the renewal time without a leader.
const never = math.MinInt64

// elapsed returns the time since the start of the stage.
func (s *Stage) elapsed() time.Duration { return time.Since(s.start) }

// may records a forbidden request: from a dead process, or a write without a current leader lease.
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

// needsLead reports whether only the leader may send the request: it writes, and is neither a lease
// request nor a read by POST.
func needsLead(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !isLead(req) && !strings.Contains(req.URL.Path, "/apis/authorization.k8s.io/") && !strings.Contains(req.URL.Path, "/apis/authentication.k8s.io/")
}

// isLead reports whether the request is about the leader lease.
func isLead(req *http.Request) bool {
	return strings.Contains(req.URL.Path, "/namespaces/"+weirNamespace+"/leases")
}

// renews records that the process acquired, renewed or released the leader lease.
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

// givesBack reports whether a renewal has an empty holder.
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
