// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// Get reads a pool. An error carries a *fault.Fault: stale if the pool or its load
// balancer is gone.
func (c *Client) Get(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	if err := checkID(id); err != nil {
		return lb.Pool{}, err
	}
	resp, err := ask(ctx, c, ofPool(id), func(ctx context.Context, of *sdk.Clients) (armnetwork.LoadBalancerBackendAddressPoolsClientGetResponse, error) {
		return of.Pools.Get(ctx, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name, nil)
	})
	if err != nil {
		return lb.Pool{}, err
	}
	return decoded(id, &resp.BackendAddressPool)
}

// decoded refuses an answer that is not the pool: taken for an empty one, it would
// have everything in the pool forgotten or overwritten.
func decoded(id lb.PoolID, shown *armnetwork.BackendAddressPool) (lb.Pool, error) {
	if shown.Properties == nil || !shows(id.String(), shown.ID, shown.Name) {
		return lb.Pool{}, notThat(ofPool(id))
	}
	return codec.DecodePool(id, shown), nil
}

// Put writes a pool that came from Get with other Addresses, or of network interfaces with
// other admin states, guarded by its Etag,
// waits until Azure is done, and returns what Azure then shows: it is for the
// caller to compare. The pool it is given is not changed.
//
// An error carries a *fault.Fault. One whose code is OutcomeUnknown says that the
// write may have landed.
func (c *Client) Put(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	begun, err := c.Begin(ctx, pool)
	if err != nil {
		return lb.Pool{}, err
	}
	return begun.End(ctx, true)
}

// Begin implements poolupdate.Pipeline: it writes a pool as Put does, and returns once Azure has accepted it.
func (c *Client) Begin(ctx context.Context, pool lb.Pool) (poolupdate.Begun, error) {
	body, err := c.encode(pool)
	if err != nil {
		return poolupdate.Begun{}, err
	}
	id := pool.ID
	this := &call{op: opPut, target: ofPool(id)}
	a, err := send(ctx, c, this, pool.Etag, func(ctx context.Context, of *sdk.Clients) (*runtime.Poller[poolPut], error) {
		return of.Pools.BeginCreateOrUpdate(ctx, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name, body, nil)
	})
	if err != nil {
		return poolupdate.Begun{}, err
	}
	etag := codec.EtagIn(a.first)
	return poolupdate.Begun{Etag: etag, Over: a.poller.Done(), End: func(ctx context.Context, looks bool) (lb.Pool, error) {
		early := c.poolLooks(pool, etag)
		if !looks {
			early.over = nil
		}
		resp, err := a.end(ctx, early)
		if err != nil {
			return lb.Pool{}, err
		}
		return decoded(id, &resp.BackendAddressPool)
	}}, nil
}

type poolPut = armnetwork.LoadBalancerBackendAddressPoolsClientCreateOrUpdateResponse

// encode checks that a pool may be written and returns what to send.
func (c *Client) encode(pool lb.Pool) (armnetwork.BackendAddressPool, error) {
	var none armnetwork.BackendAddressPool
	if err := checkID(pool.ID); err != nil {
		return none, err
	}
	name := pool.ID.LoadBalancer.Name + "/" + pool.ID.Name
	origin, ok := pool.Origin.(*armnetwork.BackendAddressPool)
	switch {
	case !ok || origin == nil:
		return none, refusal(codeNotRead, fmt.Errorf("write pool %s: it was not read before, so what else it holds would be lost", name))
	case pool.NIC && !codec.SameInterfaces(origin, pool.Addresses):
		return none, refusal(codeNetworkInterface, fmt.Errorf("write pool %s: it holds network interfaces, which join and leave by themselves, and Azure does not mix them with IP addresses: use a pool of IP addresses", name))
	case pool.Etag == "" && !c.opts.WithoutIfMatch:
		return none, refusal(codeNoEtag, fmt.Errorf("write pool %s: it has no etag to guard the write with: only what was read by itself is written", name))
	}
	body, err := codec.EncodePool(origin, pool.Addresses, c.opts.VirtualNetworkID)
	if errors.Is(err, codec.ErrNoVirtualNetwork) {
		return none, refusal(codeNoVirtualNetwork, fmt.Errorf("write pool %s: %w", name, err))
	}
	return body, err
}
