// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/updater"
)

// GetPool reads a pool. The fault is stale if the pool or its load balancer does not exist.
func (c *Client) GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error) {
	if err := checkID(id); err != nil {
		return lb.Pool{}, err
	}
	doc, err := c.getDocument(ctx, poolTarget(id))
	if err != nil {
		return lb.Pool{}, err
	}
	return decodeDocument(poolTarget(id), id, doc, codec.DecodePool)
}

// PutPool writes changed Addresses, or changed admin states of network interfaces, guarded by Etag. It
// waits for the end and returns the result for the caller to compare. pool is not modified.
func (c *Client) PutPool(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	accepted, err := c.Begin(ctx, pool)
	if err != nil {
		return lb.Pool{}, err
	}
	return accepted.Wait(ctx, true)
}

// Begin implements updater.Pipeline: like [Client.PutPool], but it returns once Azure has accepted
// the write.
func (c *Client) Begin(ctx context.Context, pool lb.Pool) (updater.AcceptedWrite, error) {
	if err := c.checkPool(pool); err != nil {
		return updater.AcceptedWrite{}, err
	}
	id := pool.ID
	a, err := c.startWrite(ctx, newPut(poolTarget(id), &pool.Origin, pool.Etag, func() (any, error) { return codec.EncodePool(pool, c.opts.VirtualNetworkID) }))
	if err != nil {
		return updater.AcceptedWrite{}, err
	}
	early := c.newPoolReader(pool, a)
	return updater.AcceptedWrite{Etag: a.etag, Completed: a.poller.Done(), Wait: func(ctx context.Context, readEarly bool) (lb.Pool, error) {
		if !readEarly {
			early.readResult = nil
		}
		doc, err := a.waitResult(ctx, early)
		if err != nil {
			return lb.Pool{}, err
		}
		return decodeDocument(poolTarget(id), id, doc, codec.DecodePool)
	}}, nil
}

func (c *Client) checkPool(pool lb.Pool) error {
	if err := checkID(pool.ID); err != nil {
		return err
	}
	name := pool.ID.LoadBalancer.Name + "/" + pool.ID.Name
	switch {
	case codec.VersionOf(pool.Origin) == "":
		return rejectRequest(codeNotRead, fmt.Errorf("write pool %s: it was not read before, so what else it holds would be lost", name))
	case pool.NIC && !codec.SameInterfaces(pool):
		return rejectRequest(codeNetworkInterface, fmt.Errorf("write pool %s: it holds network interfaces, which join and leave by themselves, and Azure does not mix them with IP addresses: use a pool of IP addresses", name))
	case pool.Etag == "" && !c.opts.WithoutIfMatch:
		return rejectRequest(codeNoEtag, fmt.Errorf("write pool %s: it has no etag to guard the write: only a resource that was read individually is written", name))
	}
	return nil
}
