// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"time"

	"weir.dev/weir/internal/azure/apart"
	"weir.dev/weir/internal/azure/look"
	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/sleep"
)

// looks reads what was written before its operation is polled.
type looks[T any] struct {
	// over reads it, and reports whether it shows that Azure is done with the write.
	over func(context.Context) (T, bool)
	// polled is told what the first poll found: whether the write was over.
	polled func(over bool)
}

// before looks until the moment of the first poll, and reports whether the write is over. A look that
// fails proves nothing: the poll follows.
func (l *looks[T]) before(ctx context.Context, follow *call, poll time.Time) (result T, over bool) {
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
func looksAt[T any](c *Client, id lb.LoadBalancerID, accepted string, over func(context.Context, *sdk.Clients) (T, bool)) *looks[T] {
	l := &looks[T]{polled: func(over bool) { c.slow.Learn(id, over) }}
	if clients, err := c.of(id.SubscriptionID); err == nil && accepted != "" && !c.slow.Is(id) {
		l.over = func(ctx context.Context) (T, bool) { return over(ctx, clients) }
	}
	return l
}

// poolLooks are the looks at a pool that was written.
func (c *Client) poolLooks(written lb.Pool, accepted string) *looks[poolPut] {
	id := written.ID
	return looksAt(c, id.LoadBalancer, accepted, func(ctx context.Context, of *sdk.Clients) (poolPut, bool) {
		resp, err := of.Pools.Get(ctx, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name, nil)
		if err != nil {
			return poolPut{}, false
		}
		shown, err := decoded(id, &resp.BackendAddressPool)
		return poolPut(resp), err == nil && look.PoolOver(written, accepted, shown)
	})
}

// balancerLooks are the looks at a load balancer that was written. pools are those of the context.
func (c *Client) balancerLooks(written lb.LoadBalancer, accepted string, pools *apart.Pools) *looks[balancerPut] {
	id := written.ID
	return looksAt(c, id, accepted, func(ctx context.Context, of *sdk.Clients) (balancerPut, bool) {
		resp, err := of.Balancers.Get(ctx, id.ResourceGroup, id.Name, nil)
		if err != nil {
			return balancerPut{}, false
		}
		pools.Rejoin(&resp.LoadBalancer)
		shown, err := decodedBalancer(id, &resp.LoadBalancer)
		return balancerPut(resp), err == nil && look.BalancerOver(written, accepted, shown)
	})
}
