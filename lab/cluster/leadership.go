// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"weir.dev/weir/internal/k8s"
)

// notRenewed is the renewal time without a leader.
const notRenewed = math.MinInt64

func (s *Stage) sinceStart() time.Duration { return time.Since(s.start) }

// checkRequest records a forbidden request: from a dead process, or a write without a current leader lease.
func (p *process) checkRequest(req *http.Request) {
	select {
	case <-p.stopDone:
		p.stage.addViolation("%s has ended, and sends %s %s", p.name, req.Method, req.URL.Path)
	default:
	}
	if len(p.stage.replicas) < 2 || !needsLeader(req) {
		return
	}
	deadline := k8s.DefaultElection().RenewDeadline
	switch at := p.renewedAt.Load(); {
	case at == notRenewed:
		p.stage.addViolation("%s does not lead, and sends %s %s", p.name, req.Method, req.URL.Path)
	case p.stage.sinceStart()-time.Duration(at) > deadline:
		p.stage.addViolation("%s sends %s %s %s after it has last renewed its lead", p.name, req.Method, req.URL.Path, p.stage.sinceStart()-time.Duration(at))
	}
}

// needsLeader reports whether only the leader may send the request: it writes, and is neither a lease
// request nor a read by POST.
func needsLeader(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !isLeaderLeaseRequest(req) && !strings.Contains(req.URL.Path, "/apis/authorization.k8s.io/") && !strings.Contains(req.URL.Path, "/apis/authentication.k8s.io/")
}

func isLeaderLeaseRequest(req *http.Request) bool {
	return strings.Contains(req.URL.Path, "/namespaces/"+weirNamespace+"/leases")
}

// recordRenewal records that the process acquired, renewed or released the leader lease.
func (p *process) recordRenewal(req *http.Request, resp *http.Response, sent time.Duration) {
	if req.Method == http.MethodGet || !isLeaderLeaseRequest(req) || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	if p.isRelease(req) {
		p.renewedAt.Store(notRenewed)
		return
	}
	p.renewedAt.Store(int64(sent))
}

// isRelease reports whether a renewal has an empty holder.
func (p *process) isRelease(req *http.Request) bool {
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
