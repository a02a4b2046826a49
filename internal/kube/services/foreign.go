// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/lb"
)

// Foreign implements balancer.Cluster. What is on the record of a BackendPool is Weir's, and in
// one that was not taken yet what will be on it then. In a pool without a BackendPool the nodes are
// Weir's: either it is not made yet, or it has gone with all that was on its record.
func (r *Reconciler) Foreign(ctx context.Context, pool lb.Pool) ([]netip.Addr, error) {
	holders := r.view.PoolsAt(pool.ID.Key())
	if len(holders) == 0 {
		return foreignIn(pool, r.view.OfThisCluster), nil
	}
	var ours []func(netip.Addr) bool
	for _, p := range holders {
		e, err := r.own.Statuses.Load(ctx, backendpool.RefOf(p), time.Now())
		if errors.Is(err, backendpool.ErrGone) {
			ours = append(ours, r.view.OfThisCluster)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what others have put into pool %s: %w", pool.ID.Name, err)
		}
		if has := e.Recorded(); has.Taken {
			ours = append(ours, among(has.Written))
		} else {
			ours = append(ours, r.pools.OursIn(p))
		}
	}
	return foreignIn(pool, ours...), nil
}

// foreignIn returns the addresses of a pool that are not ours by any of these records. Network
// interfaces have none.
func foreignIn(pool lb.Pool, ours ...func(netip.Addr) bool) []netip.Addr {
	var all []netip.Addr
	for _, a := range pool.Addresses {
		its := !a.IP.IsValid()
		for _, is := range ours {
			its = its || is(a.IP)
		}
		if !its {
			all = append(all, a.IP)
		}
	}
	return all
}

func among(ips []netip.Addr) func(netip.Addr) bool {
	set := make(map[netip.Addr]bool, len(ips))
	for _, ip := range ips {
		set[ip] = true
	}
	return func(ip netip.Addr) bool { return set[ip] }
}
