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

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// quotaCodes are the 429 codes of an exhausted subscription quota (from public reports). Other 429s
// may concern one resource and close no gate.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}

// codeTooManyRequests is the code of a 429 for a quota of Microsoft.Network, or of Microsoft.Compute as a detail of
// OperationNotAllowed (from public reports). Microsoft.Network also uses it for a single resource.
const codeTooManyRequests = "TooManyRequests"

// lockCode means that another operation locks the load balancer.
const lockCode = "RetryableErrorDueToAnotherOperation"

// closedWithoutRetryAfter is assumed: quotas refill every second and locks last about ten seconds.
const closedWithoutRetryAfter = 10 * time.Second

type gateKey struct {
	kind string // "reads", "writes", optionally " in Microsoft.Compute", or "load balancer"
	id   string // lower-case subscription ID or load balancer key
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
	// limiters limits attempts until an exhausted quota has refilled.
	limiters map[gateKey]*quotaLimiter
	onClose  func(reason string, until time.Time)
}

func newGates() *gates {
	return &gates{closed: map[gateKey]closedGate{}, limiters: map[gateKey]*quotaLimiter{}}
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
	key.kind += " in Microsoft.Compute"
	return key
}

func (c *call) isCompute() bool { return strings.HasPrefix(c.id.Type, "Microsoft.Compute/") }

// lockedLoadBalancer is the only kind that is no quota.
const lockedLoadBalancer = "load balancer"

func lockGate(id lb.LoadBalancerID) gateKey { return gateKey{lockedLoadBalancer, string(id.Key())} }

// Do implements policy.Policy.
func (g *gates) Do(req *policy.Request) (*http.Response, error) {
	c := callOf(req.Raw().Context())
	if err := g.checkOpen(c); err != nil {
		return nil, err
	}
	resp, err := req.Next()
	if c != nil && err == nil && resp.StatusCode == http.StatusTooManyRequests {
		g.closeGates(c, resp, time.Now())
	}
	return resp, err
}

// retryGates checks the gates again before each SDK retry.
type retryGates struct{ *gates }

// Do implements policy.Policy.
func (g retryGates) Do(req *policy.Request) (*http.Response, error) {
	if err := g.checkOpen(callOf(req.Raw().Context())); err != nil {
		return nil, err
	}
	return req.Next()
}

// checkOpen never blocks polls or the SDK's own requests.
func (g *gates) checkOpen(c *call) error {
	if c == nil || c.isPoll() {
		return nil
	}
	keys := []gateKey{quotaGate(c.id.SubscriptionID, c.isWrite())}
	if id, ok := c.loadBalancer(); ok {
		keys = append(keys, lockGate(id))
	}
	if c.isCompute() {
		keys = append(keys, computeGate(c.id.SubscriptionID, c.isWrite()))
	}
	if key, gate := g.lastToOpen(time.Now(), keys...); !gate.until.IsZero() {
		return &gateClosedError{key: key, closedGate: gate}
	}
	return nil
}

// closeGates closes the gates of the quotas or lock that a 429 names.
func (g *gates) closeGates(c *call, resp *http.Response, now time.Time) {
	until, named := ratelimit.RetryAfter(resp.Header, now)
	if !named {
		until = now.Add(closedWithoutRetryAfter)
	}
	for _, code := range parseCodes(resp) {
		id, balancer := c.loadBalancer()
		switch {
		case code == lockCode && balancer:
			g.closeGate(lockGate(id), closedGate{until, code})
		case code == codeTooManyRequests && c.isCompute():
			g.closeGate(computeGate(c.id.SubscriptionID, c.isWrite()), closedGate{until, code})
		case slices.Contains(quotaCodes, code):
			g.closeGate(quotaGate(c.id.SubscriptionID, c.isWrite()), closedGate{until, code})
		}
	}
}

// closeGate never shortens a closed gate.
func (g *gates) closeGate(key gateKey, gate closedGate) {
	if g.extendGate(key, gate) && g.onClose != nil {
		g.onClose((&gateClosedError{key, gate}).message(), gate.until)
	}
}

func (g *gates) extendGate(key gateKey, gate closedGate) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !gate.until.After(g.closed[key].until) {
		return false
	}
	if max(len(g.closed), len(g.limiters)) >= maxGates {
		g.trimGates(time.Now())
	}
	g.closed[key] = gate
	if key.kind == "reads" || key.kind == "writes" { // attempts need these quotas
		g.limiters[key] = newQuotaLimiter(gate.until, key.kind == "writes")
	}
	return true
}

// maxGates limits closed and limiters. Only invented subscription IDs reach it.
const maxGates = 1024

// trimGates needs g.mu.
func (g *gates) trimGates(now time.Time) {
	maps.DeleteFunc(g.closed, func(_ gateKey, gate closedGate) bool { return !gate.until.After(now) })
	maps.DeleteFunc(g.limiters, func(_ gateKey, t *quotaLimiter) bool { return t.isRefilled(now) })
	for len(g.closed) >= maxGates { // the gate that opens first
		first := slices.MinFunc(slices.Collect(maps.Keys(g.closed)), func(a, b gateKey) int { return g.closed[a].until.Compare(g.closed[b].until) })
		delete(g.closed, first)
	}
	if len(g.limiters) >= maxGates {
		clear(g.limiters)
	}
}

// lastToOpen returns zero values if all gates are open.
func (g *gates) lastToOpen(now time.Time, keys ...gateKey) (gateKey, closedGate) {
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

// gateClosedError wraps retryrepectthrottled.ErrTooManyRequest through ThrottleError.
type gateClosedError struct {
	key gateKey
	closedGate
}

// Error implements error.
func (e *gateClosedError) Error() string {
	return "not sent: " + e.message()
}

func (e *gateClosedError) message() string {
	subject := "the subscription's " + e.key.kind + " are"
	if e.key.kind == lockedLoadBalancer {
		subject = "the load balancer is"
	}
	return fmt.Sprintf("%s closed until %s after 429 %s", subject, e.until.UTC().Format(time.RFC3339), e.code)
}

// Unwrap leads to retryrepectthrottled.ErrTooManyRequest.
func (e *gateClosedError) Unwrap() error {
	return &retryrepectthrottled.ThrottleError{RetryAfter: e.until}
}

// NonRetriable stops the SDK's retries.
func (e *gateClosedError) NonRetriable() {}
