// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"time"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/look"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/sleep"
)

// looks reads what was written before its operation is polled.
type looks struct {
	// over reads it, and reports whether it shows that Azure is done with the write.
	over func(context.Context) (json.RawMessage, bool)
	// polled is told what the first poll found: whether the write was over.
	polled func(over bool)
}

// before looks until the moment of the first poll, and reports whether the write is over. A look that
// fails proves nothing: the poll follows.
func (l *looks) before(ctx context.Context, follow *call, poll time.Time) (result json.RawMessage, over bool) {
	if l == nil || l.over == nil {
		return result, false
	}
	ctx, cancel := context.WithDeadline(ctx, poll)
	defer cancel()
	follow.op = opResult
	defer func() { follow.op = opPoll }()
	start := time.Now()
	for _, after := range look.After {
		at := start.Add(after)
		if over || !at.Before(poll) || at.Before(time.Now()) || sleep.For(ctx, time.Until(at)) != nil {
			break
		}
		result, over = l.over(ctx)
		follow.seen(over, time.Now())
	}
	return result, over
}

// looksAt returns the looks at what was written of a load balancer. It has none where the last write of that
// load balancer took longer than looks are good for, or where the answer to this one had no etag.
func looksAt[I, T any](c *Client, a taken, id I, by func(I, codec.Document) (T, error), over func(accepted string, shown T) bool) *looks {
	of, _ := a.call.loadBalancer()
	l := &looks{polled: func(over bool) { c.slow.Learn(of, over) }}
	accepted := codec.EtagIn(a.first)
	if accepted == "" || c.slow.Is(of) {
		return l
	}
	l.over = func(ctx context.Context) (json.RawMessage, bool) {
		text, err := c.fetch(ctx, a.call.target, a.version)
		if err != nil {
			return nil, false
		}
		shown, err := document(a.call.target, codec.Document{Version: a.version, Text: text})
		if err != nil {
			return nil, false
		}
		is, err := by(id, shown)
		return text, err == nil && over(accepted, is)
	}
	return l
}

// poolLooks are the looks at a pool that was written.
func (c *Client) poolLooks(written lb.Pool, a taken) *looks {
	return looksAt(c, a, written.ID, codec.DecodePool, func(accepted string, shown lb.Pool) bool { return look.PoolOver(written, accepted, shown) })
}

// balancerLooks are the looks at a load balancer that was written.
func (c *Client) balancerLooks(written lb.LoadBalancer, a taken) *looks {
	return looksAt(c, a, written.ID, codec.DecodeLoadBalancer, func(accepted string, shown lb.LoadBalancer) bool {
		return look.BalancerOver(written, accepted, shown)
	})
}
