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

// looks reads a written resource before its operation is polled.
type looks struct {
	over func(context.Context) (json.RawMessage, bool)
	// polled receives whether the write had finished at the first poll.
	polled func(over bool)
}

// before reads until the first poll is due. A failed read is ignored.
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

// looksAt returns no early reads if the previous write of the load balancer was slow, or if the
// response has no etag.
func looksAt[I, T any](c *Client, a taken, id I, convert func(I, codec.Document) (T, error), over func(accepted string, doc T) bool) *looks {
	loadBalancer, _ := a.call.loadBalancer()
	l := &looks{polled: func(over bool) { c.slow.Learn(loadBalancer, over) }}
	accepted := codec.EtagIn(a.first)
	if accepted == "" || c.slow.Is(loadBalancer) {
		return l
	}
	l.over = func(ctx context.Context) (json.RawMessage, bool) {
		text, err := c.fetch(ctx, a.call.target, a.version)
		if err != nil {
			return nil, false
		}
		doc, err := document(a.call.target, codec.Document{Version: a.version, Text: text})
		if err != nil {
			return nil, false
		}
		value, err := convert(id, doc)
		return text, err == nil && over(accepted, value)
	}
	return l
}

func (c *Client) poolLooks(written lb.Pool, a taken) *looks {
	return looksAt(c, a, written.ID, codec.DecodePool, func(accepted string, observed lb.Pool) bool { return look.PoolOver(written, accepted, observed) })
}

func (c *Client) balancerLooks(written lb.LoadBalancer, a taken) *looks {
	return looksAt(c, a, written.ID, codec.DecodeLoadBalancer, func(accepted string, observed lb.LoadBalancer) bool {
		return look.BalancerOver(written, accepted, observed)
	})
}
