// SPDX-License-Identifier: Apache-2.0

package apifault

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Broken is what becomes of the connection of a request.
type Broken int

// What becomes of a connection. All but Draining end it with whatever else is on it,
// and the request gets no answer.
const (
	Whole    Broken = iota
	Reset           // TCP RST: "connection reset by peer"
	Closed          // closed in good order: EOF
	GoAway          // an HTTP/2 GOAWAY, and closed before the answer
	Draining        // answered, and a GOAWAY that lets what is under way end: what a kube-apiserver sends now and then to balance load, and when it stops
)

// Fault is what a request meets. The zero value is none.
type Fault struct {
	// Status answers with a Kubernetes Status of this code, and RetryAfter is the header
	// with it, unless empty. The kube-apiserver is not asked.
	Status     int
	RetryAfter string
	// Conn is what becomes of the connection.
	Conn Broken
	// Landed asks the kube-apiserver first, so that only the answer is lost.
	Landed bool
	// Hangs gives no answer until the client gives up. The kube-apiserver is not asked.
	Hangs bool
	// Expired answers a watch with 200 and an event of type ERROR that says 410.
	Expired bool
	// Torn lets the answer's first pieces through, of a watch most often an event each,
	// as many as TornAfter says, and then half of one; then the answer ends.
	Torn      bool
	TornAfter int
}

// Rule says which requests meet a fault.
type Rule struct {
	Request // what it leaves empty is anything

	// Skip lets the first ones through, and Times ends it; 0 times is until it is removed.
	Skip, Times int

	Fault Fault
}

type ruleState struct {
	Rule

	seen int
}

// On adds a rule. If several match, the first that was added decides. It returns what
// removes the rule.
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

// fault returns what a request meets.
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

// answer says it in JSON, which every client reads, whatever it asked for.
func answer(w http.ResponseWriter, status int, retryAfter string, body any) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

func expired() any {
	return map[string]any{"type": "ERROR", "object": statusOf(http.StatusGone)}
}
