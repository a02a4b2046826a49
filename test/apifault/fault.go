// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Broken is a fault of a request's connection.
type Broken int

// Connection faults. All but Draining end the connection with all its requests, and the request
// gets no response.
const (
	Whole    Broken = iota
	Reset           // TCP RST: "connection reset by peer"
	Closed          // closed cleanly: EOF
	GoAway          // HTTP/2 GOAWAY, then closed before the response
	Draining        // responds, then sends a GOAWAY that lets running requests finish, as a kube-apiserver does to rebalance load and at shutdown
)

// Fault is the fault of a request. The zero value is none.
type Fault struct {
	// Status responds with a Kubernetes Status of this code and, if set, the header RetryAfter,
	// without reaching the kube-apiserver.
	Status     int
	RetryAfter string
	// Conn is the connection fault.
	Conn Broken
	// Landed sends the request to the kube-apiserver first, so that only the response is lost.
	Landed bool
	// Hangs gives no response until the client cancels, without reaching the kube-apiserver.
	Hangs bool
	// Expired answers a watch with 200 and an ERROR event of code 410.
	Expired bool
	// Torn passes TornAfter chunks of the response, usually one watch event each, then half a
	// chunk, and ends.
	Torn      bool
	TornAfter int
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

// On adds a rule and returns a function that removes it. The oldest matching rule applies.
func (p *Proxy) On(rule Rule) (remove func()) {
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

// fault returns the fault of a request.
func (p *Proxy) fault(r Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if !r.matches(rule.Request) || rule.Times > 0 && rule.seen >= rule.Skip+rule.Times {
			continue
		}
		rule.seen++
		if rule.seen > rule.Skip {
			return rule.Fault
		}
	}
	return Fault{}
}

var reasons = map[int]metav1.StatusReason{
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

func statusOf(code int) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], //nolint:gosec // an HTTP status
		Message: "injected: " + http.StatusText(code),
	}
}

// answer responds in JSON, which every client accepts.
func answer(w http.ResponseWriter, status int, retryAfter string, body any) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}

func expired() any {
	return map[string]any{"type": "ERROR", "object": statusOf(http.StatusGone)}
}
