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

// quotaCodes are the 429 codes of an exhausted subscription quota (from public reports). Other 429s
// may concern one resource and close no gate.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}

// computeCode is the 429 code of the compute provider's quotas, a detail of OperationNotAllowed
// (from public reports).
const computeCode = "TooManyRequests"

// lockCode means that another operation locks the load balancer.
const lockCode = "RetryableErrorDueToAnotherOperation"

// closedWithoutRetryAfter is assumed: quotas refill every second and locks last about ten seconds.
const closedWithoutRetryAfter = 10 * time.Second

type gateKey struct {
	what  string // "reads", "writes", optionally " in Microsoft.Compute", or "load balancer"
	which string // lower-case subscription ID or load balancer key
}

type closedGate struct {
	until time.Time
	code  string
}

// gates holds closed gates. The policy runs before the SDK's retries, so a closed gate causes
// neither a request nor a backoff.
type gates struct {
	mu     sync.Mutex // guards the maps; not held during requests
	closed map[gateKey]closedGate
	// turns limits attempts until an exhausted quota has refilled.
	turns map[gateKey]*quota.Turns
	tell  func(why string, until time.Time)
}

func newGates() *gates {
	return &gates{closed: map[gateKey]closedGate{}, turns: map[gateKey]*quota.Turns{}}
}

// quotaGate treats deletions as writes: Microsoft.Network charges them the same.
func quotaGate(subscription string, write bool) gateKey {
	if write {
		return gateKey{"writes", strings.ToLower(subscription)}
	}
	return gateKey{"reads", strings.ToLower(subscription)}
}

func computeGate(subscription string, write bool) gateKey {
	key := quotaGate(subscription, write)
	key.what += " in Microsoft.Compute"
	return key
}

func (c *call) compute() bool { return strings.HasPrefix(c.id.Type, "Microsoft.Compute/") }

// lockedLoadBalancer is the only kind that is no quota.
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

// gateOfRetries checks the gates again before each SDK retry.
type gateOfRetries struct{ *gates }

// Do implements policy.Policy.
func (g gateOfRetries) Do(req *policy.Request) (*http.Response, error) {
	if err := g.pass(callOf(req.Raw().Context())); err != nil {
		return nil, err
	}
	return req.Next()
}

// pass never blocks polls or the SDK's own requests.
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

// close never shortens a closed gate.
func (g *gates) close(key gateKey, gate closedGate) {
	if g.shut(key, gate) && g.tell != nil {
		g.tell((&gateClosed{key, gate}).why(), gate.until)
	}
}

func (g *gates) shut(key gateKey, gate closedGate) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !gate.until.After(g.closed[key].until) {
		return false
	}
	if max(len(g.closed), len(g.turns)) >= mostGates {
		g.trim(time.Now())
	}
	g.closed[key] = gate
	if key.what == "reads" || key.what == "writes" { // turns apply to load balancers, which need these quotas
		g.turns[key] = quota.Until(gate.until, key.what == "writes")
	}
	return true
}

// mostGates limits closed and turns. Only invented subscription IDs reach it.
const mostGates = 1024

// trim needs g.mu.
func (g *gates) trim(now time.Time) {
	maps.DeleteFunc(g.closed, func(_ gateKey, gate closedGate) bool { return !gate.until.After(now) })
	maps.DeleteFunc(g.turns, func(_ gateKey, t *quota.Turns) bool { return t.Over(now) })
	for len(g.closed) >= mostGates { // the gate that opens first
		first := slices.MinFunc(slices.Collect(maps.Keys(g.closed)), func(a, b gateKey) int { return g.closed[a].until.Compare(g.closed[b].until) })
		delete(g.closed, first)
	}
	if len(g.turns) >= mostGates {
		clear(g.turns)
	}
}

// last returns zero values if all gates are open.
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

// gateClosed wraps retryrepectthrottled.ErrTooManyRequest through ThrottleError.
type gateClosed struct {
	key gateKey
	closedGate
}

// Error implements error.
func (e *gateClosed) Error() string {
	return "not sent: " + e.why()
}

func (e *gateClosed) why() string {
	subject := "the subscription's " + e.key.what + " are"
	if e.key.what == lockedLoadBalancer {
		subject = "the load balancer is"
	}
	return fmt.Sprintf("%s closed until %s after 429 %s", subject, e.until.UTC().Format(time.RFC3339), e.code)
}

// Unwrap leads to retryrepectthrottled.ErrTooManyRequest.
func (e *gateClosed) Unwrap() error {
	return &retryrepectthrottled.ThrottleError{RetryAfter: e.until}
}

// NonRetriable stops the SDK's retries.
func (e *gateClosed) NonRetriable() {}
