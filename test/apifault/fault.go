// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConnectionFault is a fault of a request's connection.
type ConnectionFault int

// Connection faults. All but Draining end the connection with all its requests, and the request
// gets no response.
const (
	Whole      ConnectionFault = iota
	ResetConn                  // TCP RST: "connection reset by peer"
	CloseConn                  // closed cleanly: EOF
	GoAwayConn                 // HTTP/2 GOAWAY, then closed before the response
	DrainConn                  // responds, then sends a GOAWAY that allows running requests to finish, as a kube-apiserver does to rebalance load and at shutdown
)

// Fault is the fault of a request. The zero value is none.
type Fault struct {
	// Status responds with a Kubernetes Status of this code and, if set, the header RetryAfter,
	// without reaching the kube-apiserver.
	Status     int
	RetryAfter string
	// Connection is the connection fault.
	Connection ConnectionFault
	// AfterServer sends the request to the kube-apiserver first, so that only the response is lost.
	AfterServer bool
	// Hang gives no response until the client cancels, without reaching the kube-apiserver.
	Hang bool
	// ExpireWatch answers a watch with 200 and an ERROR event of code 410.
	ExpireWatch bool
	// Truncate passes some chunks of the response, usually one watch event each, then half a chunk, and
	// ends.
	Truncate      bool
	TruncateAfter int
}

// Rule applies a fault to matching requests.
type Rule struct {
	Request // empty fields match anything

	// Skip ignores the first matches; Times limits the rule, 0 is unlimited.
	Skip, Times int

	Fault Fault
}

type ruleState struct {
	Rule

	seen int
}

// AddRule adds a rule and returns a function that removes it. The oldest matching rule applies.
func (p *Proxy) AddRule(rule Rule) (remove func()) {
	state := &ruleState{Rule: rule}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, state)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, r := range p.rules {
			if r == state {
				p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
				return
			}
		}
	}
}

func (p *Proxy) nextFault(r Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if !r.matchesPattern(rule.Request) || rule.Times > 0 && rule.seen >= rule.Skip+rule.Times {
			continue
		}
		rule.seen++
		if rule.seen > rule.Skip {
			return rule.Fault
		}
	}
	return Fault{}
}

var statusReasons = map[int]metav1.StatusReason{
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

func newStatus(code int) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: statusReasons[code], //nolint:gosec // an HTTP status
		Message: "injected: " + http.StatusText(code),
	}
}

// writeStatus responds in JSON, which every client accepts.
func writeStatus(w http.ResponseWriter, status int, retryAfter string, body any) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

func isExpired() any {
	return map[string]any{"type": "ERROR", "object": newStatus(http.StatusGone)}
}
