// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"

	"weir.dev/weir/internal/azure/quota"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/lb"
)

// quotaCodes are the codes of a 429 that says the subscription's requests are used
// up: Azure Resource Manager's buckets answer SubscriptionRequestsThrottled, its limits
// per provider ResourceRequestsThrottled (both seen in public reports). Any other 429,
// TooManyRequests among them, may be about one resource and closes nothing for the rest:
// each pool that meets it is parked by itself.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}

// computeCode is the code of a 429 of the compute provider's own quotas, a detail of
// OperationNotAllowed (seen in public reports). Its target names the quota, and not which requests
// count to it.
const computeCode = "TooManyRequests"

// lockCode says that another operation holds the load balancer.
const lockCode = "RetryableErrorDueToAnotherOperation"

// closedWithoutRetryAfter is how long a gate stays closed when the 429 named no
// time. Assumed: the buckets refill by the second and locks last some ten seconds.
// The message's "can be retried in N seconds" is text for people, not a contract.
const closedWithoutRetryAfter = 10 * time.Second

// gateKey names a gate: the reads or the writes of a subscription, or all requests
// for one load balancer.
type gateKey struct {
	what  string // "reads", "writes", of Microsoft.Compute or of all, or "load balancer"
	which string // folded subscription id or load balancer key
}

type closedGate struct {
	until time.Time
	code  string
}

// gates holds what 429s have closed. As a policy it sits before the SDK's
// retries, so that a closed gate costs no request and no back-off.
type gates struct {
	mu     sync.Mutex // guards all below; never held during a request
	closed map[gateKey]closedGate
	// turns are those of the quotas that were used up, and are not whole again.
	turns map[gateKey]*quota.Turns
	// tell is told what closes; nil tells nobody.
	tell func(why string, until time.Time)
}

func newGates() *gates {
	return &gates{closed: map[gateKey]closedGate{}, turns: map[gateKey]*quota.Turns{}}
}

// quotaGate is that of a subscription's reads or writes. Deletions are writes: of
// Microsoft.Network's quota they take the same part.
func quotaGate(subscription string, write bool) gateKey {
	if write {
		return gateKey{"writes", strings.ToLower(subscription)}
	}
	return gateKey{"reads", strings.ToLower(subscription)}
}

// computeGate is that of a subscription's reads or writes in Microsoft.Compute, whose quotas are
// its own.
func computeGate(subscription string, write bool) gateKey {
	key := quotaGate(subscription, write)
	key.what += " in Microsoft.Compute"
	return key
}

// compute reports whether a call is the compute provider's to answer.
func (c *call) compute() bool { return strings.HasPrefix(c.id.Type, "Microsoft.Compute/") }

// lockedLoadBalancer is what a lock's gate closes; the other gates are quotas.
const lockedLoadBalancer = "load balancer"

func lockGate(id lb.LoadBalancerID) gateKey { return gateKey{lockedLoadBalancer, string(id.Key())} }

// Do implements policy.Policy.
func (g *gates) Do(req *policy.Request) (*http.Response, error) {
	c := callOf(req.Raw().Context())
	if err := g.pass(c); err != nil {
		return nil, err
	}
	resp, err := req.Next()
	if c != nil && err == nil && resp.StatusCode == http.StatusTooManyRequests {
		g.learn(c, resp, time.Now())
	}
	return resp, err
}

// gateOfRetries asks the gates once more before each of the SDK's own retries: one may
// have closed since the first try.
type gateOfRetries struct{ *gates }

// Do implements policy.Policy.
func (g gateOfRetries) Do(req *policy.Request) (*http.Response, error) {
	if err := g.pass(callOf(req.Raw().Context())); err != nil {
		return nil, err
	}
	return req.Next()
}

// pass returns an error if a call would meet a closed gate. Following an accepted write
// is never gated, nor is a request of the SDK's own.
func (g *gates) pass(c *call) error {
	if c == nil || c.followsUp() {
		return nil
	}
	keys := []gateKey{quotaGate(c.id.SubscriptionID, c.write())}
	if id, ok := c.loadBalancer(); ok {
		keys = append(keys, lockGate(id))
	}
	if c.compute() {
		keys = append(keys, computeGate(c.id.SubscriptionID, c.write()))
	}
	if key, gate := g.last(time.Now(), keys...); !gate.until.IsZero() {
		return &gateClosed{key: key, closedGate: gate}
	}
	return nil
}

// learn closes what a 429 says is closed.
func (g *gates) learn(c *call, resp *http.Response, now time.Time) {
	until, named := backoff.RetryAfter(resp.Header, now)
	if !named {
		until = now.Add(closedWithoutRetryAfter)
	}
	for _, code := range codesOf(resp) {
		id, balancer := c.loadBalancer()
		switch {
		case code == lockCode && balancer:
			g.close(lockGate(id), closedGate{until, code})
		case code == computeCode && c.compute():
			g.close(computeGate(c.id.SubscriptionID, c.write()), closedGate{until, code})
		case slices.Contains(quotaCodes, code):
			g.close(quotaGate(c.id.SubscriptionID, c.write()), closedGate{until, code})
		}
	}
}

// close never opens a gate earlier than it would have.
func (g *gates) close(key gateKey, gate closedGate) {
	if g.shut(key, gate) && g.tell != nil {
		g.tell((&gateClosed{key, gate}).why(), gate.until)
	}
}

func (g *gates) shut(key gateKey, gate closedGate) (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !gate.until.After(g.closed[key].until) {
		return false
	}
	if max(len(g.closed), len(g.turns)) >= mostGates {
		g.trim(time.Now())
	}
	g.closed[key] = gate
	if key.what == "reads" || key.what == "writes" { // turns are of load balancers, which need these
		g.turns[key] = quota.Until(gate.until, key.what == "writes")
	}
	return true
}

// mostGates bounds the gates, and the turns after them. More are closed at a time only if
// somebody makes up subscriptions.
const mostGates = 1024

// trim makes room. The caller holds the lock.
func (g *gates) trim(now time.Time) {
	maps.DeleteFunc(g.closed, func(_ gateKey, is closedGate) bool { return !is.until.After(now) })
	maps.DeleteFunc(g.turns, func(_ gateKey, t *quota.Turns) bool { return t.Over(now) })
	for len(g.closed) >= mostGates { // that which opens first
		first := slices.MinFunc(slices.Collect(maps.Keys(g.closed)), func(a, b gateKey) int { return g.closed[a].until.Compare(g.closed[b].until) })
		delete(g.closed, first)
	}
	if len(g.turns) >= mostGates {
		clear(g.turns)
	}
}

// last returns the one of the gates that opens last, or zero if all are open.
func (g *gates) last(now time.Time, keys ...gateKey) (gateKey, closedGate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var lastKey gateKey
	var last closedGate
	for _, key := range keys {
		gate, ok := g.closed[key]
		if !ok {
			continue
		}
		if !gate.until.After(now) {
			delete(g.closed, key)
			continue
		}
		if gate.until.After(last.until) {
			lastKey, last = key, gate
		}
	}
	return lastKey, last
}

// gateClosed says that a request met a closed gate and never left. It wraps
// retryrepectthrottled.ErrTooManyRequest, by way of that package's ThrottleError.
type gateClosed struct {
	key gateKey
	closedGate
}

// Error implements error.
func (e *gateClosed) Error() string {
	return "not sent: " + e.why()
}

// why says what is closed, and since what.
func (e *gateClosed) why() string {
	whose := "the subscription's " + e.key.what + " are"
	if e.key.what == lockedLoadBalancer {
		whose = "the load balancer is"
	}
	return fmt.Sprintf("%s closed until %s after 429 %s", whose, e.until.UTC().Format(time.RFC3339), e.code)
}

// Unwrap leads to retryrepectthrottled.ErrTooManyRequest.
func (e *gateClosed) Unwrap() error {
	return &retryrepectthrottled.ThrottleError{RetryAfter: e.until}
}

// NonRetriable tells the SDK's retry policy to stop.
func (e *gateClosed) NonRetriable() {}
