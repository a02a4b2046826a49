// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// Enter implements poolupdate.Azure.
func (c *Client) Enter(id lb.LoadBalancerID) (until time.Time, reason string) {
	return c.gates.enter(id, time.Now())
}

func (g *gates) enter(id lb.LoadBalancerID, now time.Time) (until time.Time, reason string) {
	return g.turnOf(id.SubscriptionID, string(id.Key()), now, lockGate(id))
}

// EnterResource is Enter for a network interface, or for a scale set and its instances.
func (c *Client) EnterResource(id lb.ResourceID) (until time.Time, reason string) {
	var more []gateKey
	if (&call{target: target{id: id}}).compute() {
		more = []gateKey{computeGate(id.SubscriptionID, false), computeGate(id.SubscriptionID, true)}
	}
	return c.gates.turnOf(id.SubscriptionID, id.Key(), time.Now(), more...)
}

// turnOf reserves an attempt; more are gates in addition to the subscription's.
func (g *gates) turnOf(subscription, caller string, now time.Time, more ...gateKey) (until time.Time, reason string) {
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
		case t.Over(now):
			delete(g.turns, key)
		default:
			if at := t.At(caller, now); at.After(turn) {
				turn = at
			}
		}
	}
	if turn.After(now) {
		return turn, ""
	}
	for _, key := range quotas {
		if t := g.turns[key]; t != nil {
			t.Take(caller)
		}
	}
	return time.Time{}, ""
}
