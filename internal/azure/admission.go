// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// Enter implements updater.Azure.
func (c *Client) Enter(id lb.LoadBalancerID) (until time.Time, reason string) {
	return c.gates.admitLoadBalancer(id, time.Now())
}

func (g *gates) admitLoadBalancer(id lb.LoadBalancerID, now time.Time) (until time.Time, reason string) {
	return g.reserveAttempt(id.SubscriptionID, string(id.Key()), now, lockGate(id))
}

// EnterResource is Enter for a network interface, or for a scale set and its instances.
func (c *Client) EnterResource(id lb.ResourceID) (until time.Time, reason string) {
	var more []gateKey
	if (&call{target: target{id: id}}).isCompute() {
		more = []gateKey{computeGate(id.SubscriptionID, false), computeGate(id.SubscriptionID, true)}
	}
	return c.gates.reserveAttempt(id.SubscriptionID, id.Key(), time.Now(), more...)
}

// reserveAttempt reserves an attempt; more are gates in addition to the subscription's.
func (g *gates) reserveAttempt(subscription, caller string, now time.Time, more ...gateKey) (until time.Time, reason string) {
	quotas := []gateKey{quotaGate(subscription, false), quotaGate(subscription, true)}
	if key, gate := g.lastToOpen(now, append(more, quotas...)...); !gate.until.IsZero() {
		return gate.until, (&gateClosedError{key, gate}).message()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var turn time.Time
	for _, key := range quotas {
		t := g.limiters[key]
		switch {
		case t == nil:
		case t.isRefilled(now):
			delete(g.limiters, key)
		default:
			if at := t.reserveAttempt(caller, now); at.After(turn) {
				turn = at
			}
		}
	}
	if turn.After(now) {
		return turn, ""
	}
	for _, key := range quotas {
		if t := g.limiters[key]; t != nil {
			t.useReservation(caller)
		}
	}
	return time.Time{}, ""
}
