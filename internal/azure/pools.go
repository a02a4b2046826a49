// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// Get reads a pool. An error carries a *fault.Fault: stale if the pool or its load
// balancer is gone.
func (c *Client) Get(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	if err := checkID(id); err != nil {
		return lb.Pool{}, err
	}
	this := &call{op: opGet, pool: id}
	client, err := c.pools(id.LoadBalancer.SubscriptionID)
	if err != nil {
		return lb.Pool{}, classify(ctx, this, err)
	}
	resp, err := client.Get(withCall(ctx, this), id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name, nil)
	if err != nil {
		return lb.Pool{}, classify(ctx, this, err)
	}
	return c.decoded(this, &resp.BackendAddressPool)
}

// decoded refuses an answer that is not the pool: taken for an empty one, it would
// have everything in the pool forgotten or overwritten.
func (c *Client) decoded(this *call, shown *armnetwork.BackendAddressPool) (lb.Pool, error) {
	id := this.pool
	if shown.Properties == nil || !namesPool(shown, id) {
		err := fmt.Errorf("pool %s/%s: the answer with status 200 is not that pool", id.LoadBalancer.Name, id.Name)
		return lb.Pool{}, fault.Classify(fault.Answer{OutcomeUnknown: true}, err)
	}
	return decode(id, shown), nil
}

// namesPool reports whether an answer is about the pool. Its id may be spelled with
// other capitals than the request.
func namesPool(shown *armnetwork.BackendAddressPool, id lb.PoolID) bool {
	if shown.ID != nil {
		return strings.EqualFold(*shown.ID, id.String())
	}
	return strings.EqualFold(value(shown.Name), id.Name)
}

// Put writes a pool that came from Get with other Addresses, guarded by its Etag,
// waits until Azure is done, and returns what Azure then shows: it is for the
// caller to compare. The pool it is given is not changed.
//
// An error carries a *fault.Fault. One whose code is OutcomeUnknown says that the
// write may have landed.
func (c *Client) Put(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	body, err := c.encode(pool)
	if err != nil {
		return lb.Pool{}, err
	}
	id := pool.ID
	this := &call{op: opPut, pool: id}
	client, err := c.pools(id.LoadBalancer.SubscriptionID)
	if err != nil {
		return lb.Pool{}, classify(ctx, this, err)
	}
	// The header belongs to this one request. It would travel to the polls if
	// they were made with the same context.
	var first *http.Response
	begin := policy.WithCaptureResponse(withCall(ctx, this), &first)
	if !c.opts.WithoutIfMatch {
		begin = policy.WithHTTPHeader(begin, http.Header{"If-Match": {pool.Etag}})
	}
	poller, err := client.BeginCreateOrUpdate(begin, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name, body, nil)
	if err != nil {
		return lb.Pool{}, classify(ctx, this, err)
	}
	follow := this.following()
	resp, err := wait(withCall(ctx, follow), follow, poller, first)
	if err != nil {
		return lb.Pool{}, classify(ctx, follow, err)
	}
	return c.decoded(follow, &resp.BackendAddressPool)
}

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
	case pool.NIC:
		return none, refusal(codeNetworkInterface, fmt.Errorf("write pool %s: it holds network interfaces, and Azure does not mix them with IP addresses: use a pool of IP addresses", name))
	case pool.Etag == "" && !c.opts.WithoutIfMatch:
		return none, refusal(codeNoEtag, fmt.Errorf("write pool %s: Azure showed no etag to guard the write with", name))
	}
	body, err := encode(origin, pool.Addresses, c.opts.VirtualNetworkID)
	if errors.Is(err, errNoVirtualNetwork) {
		return none, refusal(codeNoVirtualNetwork, fmt.Errorf("write pool %s: %w", name, err))
	}
	return body, err
}
