// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// Get reads a pool. The fault is stale if the pool or its load balancer does not exist.
func (c *Client) Get(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	if err := checkID(id); err != nil {
		return lb.Pool{}, err
	}
	doc, err := c.get(ctx, ofPool(id))
	if err != nil {
		return lb.Pool{}, err
	}
	return decode(ofPool(id), id, doc, codec.DecodePool)
}

// Put writes changed Addresses, or changed admin states of network interfaces, guarded by Etag. It
// waits for the end and returns the result for the caller to compare. pool is not modified.
func (c *Client) Put(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	accepted, err := c.Begin(ctx, pool)
	if err != nil {
		return lb.Pool{}, err
	}
	return accepted.End(ctx, true)
}

// Begin implements poolupdate.Pipeline: like [Client.Put], but it returns once Azure has accepted
// the write.
func (c *Client) Begin(ctx context.Context, pool lb.Pool) (poolupdate.Begun, error) {
	if err := c.checkPool(pool); err != nil {
		return poolupdate.Begun{}, err
	}
	id := pool.ID
	a, err := c.begin(ctx, put(ofPool(id), &pool.Origin, pool.Etag, func() (any, error) { return codec.EncodePool(pool, c.opts.VirtualNetworkID) }))
	if err != nil {
		return poolupdate.Begun{}, err
	}
	early := c.poolLooks(pool, a)
	return poolupdate.Begun{Etag: codec.EtagIn(a.first), Over: a.poller.Done(), End: func(ctx context.Context, readEarly bool) (lb.Pool, error) {
		if !readEarly {
			early.over = nil
		}
		doc, err := a.end(ctx, early)
		if err != nil {
			return lb.Pool{}, err
		}
		return decode(ofPool(id), id, doc, codec.DecodePool)
	}}, nil
}

func (c *Client) checkPool(pool lb.Pool) error {
	if err := checkID(pool.ID); err != nil {
		return err
	}
	name := pool.ID.LoadBalancer.Name + "/" + pool.ID.Name
	switch {
	case codec.VersionOf(pool.Origin) == "":
		return refusal(codeNotRead, fmt.Errorf("write pool %s: it was not read before, so what else it holds would be lost", name))
	case pool.NIC && !codec.SameInterfaces(pool):
		return refusal(codeNetworkInterface, fmt.Errorf("write pool %s: it holds network interfaces, which join and leave by themselves, and Azure does not mix them with IP addresses: use a pool of IP addresses", name))
	case pool.Etag == "" && !c.opts.WithoutIfMatch:
		return refusal(codeNoEtag, fmt.Errorf("write pool %s: it has no etag to guard the write with: only what was read by itself is written", name))
	}
	return nil
}
