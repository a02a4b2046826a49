// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/service"
)

// DryRun does for one Service what the controller would do, including its pools and a new pool of
// all nodes. refused is an error in the Service, err a failed read.
func (s *Simulator) DryRun(ctx context.Context, req loadbalancer.Request, desired func(service.Pool) (diff.Desired, error), adminStates bool) (refused, err error) {
	results, err := s.RunRequests(ctx, []loadbalancer.Request{req})
	switch {
	case err != nil:
		return nil, err
	case errors.Is(results[0].Err, publicip.ErrBasic):
		return results[0].Err, nil
	case UnknownReason(results[0]) != nil:
		return nil, UnknownReason(results[0])
	case results[0].Err != nil:
		return results[0].Err, nil
	case req.Desired == nil:
		return nil, nil
	}
	for _, pool := range results[0].Pools {
		on, err := s.Shadow.GetLoadBalancer(ctx, req.On)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(on.Pools, func(p lb.Pool) bool { return strings.EqualFold(p.ID.Name, pool.Name) })
		if at < 0 || pool.Shared && len(on.Pools[at].Addresses) > 0 {
			continue
		}
		wants, err := desired(pool)
		if err != nil {
			return nil, err
		}
		if pool.Interfaces {
			if _, err := s.updateMembers(ctx, on.Pools[at], wants); err != nil {
				return nil, err
			}
			continue
		}
		if next, err := diff.DryRun(on.Pools[at], wants, adminStates); err == nil { // a pool of network interfaces is left unchanged
			s.Shadow.PutPool(next)
		}
	}
	return nil, nil
}
