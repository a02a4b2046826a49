// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	"golang.org/x/time/rate"

	"weir.dev/weir/internal/lb"
)

// What Azure gives back after a quota was used up. Writes: Microsoft.Network takes
// 1,000 in 5 minutes, which is tighter than Resource Manager's 10 a second; reads:
// 25 a second, up to 250 saved (all documented, and counted by Azure for each
// identity and region). What one attempt costs is an assumption: a write, and a read,
// some polls and the read of the result.
const (
	writesPerSecond = 1000.0 / (5 * 60)
	writesSaved     = 200
	writesAnAttempt = 1
	readsPerSecond  = 25
	readsSaved      = 250
	readsAnAttempt  = 5
)

// turnHolds is how long a turn is kept for a load balancer that does not come: many that
// were kept would be a herd in the end.
const turnHolds = 5 * time.Second

// turns hands out attempts after a quota's gate has opened, at the rate at which the
// quota comes back: all lanes at once would only close it again. The gates' lock guards it.
type turns struct {
	limiter *rate.Limiter
	cost    int
	// of holds the turn of each load balancer, or other resource, that has one and has not taken it.
	of map[string]time.Time
}

// newTurns returns the turns of a quota that is used up until a time; at that time
// there is enough for one attempt.
func newTurns(key gateKey, until time.Time) *turns {
	perSecond, saved, cost := rate.Limit(readsPerSecond), readsSaved, readsAnAttempt
	if key.what == "writes" {
		perSecond, saved, cost = writesPerSecond, writesSaved, writesAnAttempt
	}
	t := &turns{limiter: rate.NewLimiter(perSecond, saved), cost: cost, of: map[string]time.Time{}}
	t.limiter.ReserveN(until, saved-cost)
	return t
}

// at returns when a load balancer's next attempt may start.
func (t *turns) at(id string, now time.Time) time.Time {
	at, ok := t.of[id]
	if !ok || now.Sub(at) > turnHolds {
		at = now.Add(t.limiter.ReserveN(now, t.cost).DelayFrom(now))
		t.of[id] = at
	}
	return at
}

// over reports whether the quota is as good as untouched again.
func (t *turns) over(now time.Time) bool {
	return t.limiter.TokensAt(now) >= float64(t.limiter.Burst())
}

// Enter implements poolupdate.Azure.
func (c *Client) Enter(id lb.LoadBalancerID) (until time.Time, why string) {
	return c.gates.enter(id, time.Now())
}

func (g *gates) enter(id lb.LoadBalancerID, now time.Time) (until time.Time, why string) {
	return g.turnOf(id.SubscriptionID, string(id.Key()), now, lockGate(id))
}

// EnterResource asks for leave to work on a network interface, or on a scale set and its instances,
// as Enter does for a load balancer.
func (c *Client) EnterResource(id lb.ResourceID) (until time.Time, why string) {
	var more []gateKey
	if (&call{target: target{id: id}}).compute() {
		more = []gateKey{computeGate(id.SubscriptionID, false), computeGate(id.SubscriptionID, true)}
	}
	return c.gates.turnOf(id.SubscriptionID, id.Key(), time.Now(), more...)
}

// turnOf is for whoever has a key of its own; more are gates besides the subscription's.
func (g *gates) turnOf(subscription, who string, now time.Time, more ...gateKey) (until time.Time, why string) {
	quotas := []gateKey{quotaGate(subscription, false), quotaGate(subscription, true)}
	if key, gate := g.last(now, append(more, quotas...)...); !gate.until.IsZero() {
		return gate.until, (&gateClosed{key, gate}).why()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var turn time.Time
	for _, key := range quotas {
		t := g.turns[key]
		switch {
		case t == nil:
		case t.over(now):
			delete(g.turns, key)
		default:
			if at := t.at(who, now); at.After(turn) {
				turn = at
			}
		}
	}
	if turn.After(now) {
		return turn, ""
	}
	for _, key := range quotas {
		if t := g.turns[key]; t != nil {
			delete(t.of, who)
		}
	}
	return time.Time{}, ""
}
