// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/behaviour"
)

type step struct {
	title     string
	questions []string
	do        func(*run, context.Context) error
}

// steps first read the current state, so a failed step does not affect the next. The last one is
// destructive.
func steps() []step {
	return []step{
		{"writes of a pool, with and without the right etag", []string{poolIfMatch}, (*run).askIfMatch},
		{"a write of the load balancer with another address", []string{wholeAddresses}, (*run).askWholeAddresses},
		{"a write of the load balancer with another admin state", []string{wholeStates}, (*run).askWholeStates},
		{"a write of the load balancer with one more pool", []string{newPools}, (*run).askNewPools},
		{"writes that change nothing", []string{unchangedEtag}, (*run).askUnchanged},
		{"writes of what must not be there", []string{ifNoneMatch}, (*run).askIfNoneMatch},
		{"writes that overlap", []string{overlapping}, (*run).askOverlap},
		{"Down on a network interface", []string{interfaceState}, (*run).askInterfaceState},
		{"a load balancer that is Failed", []string{failedParent}, (*run).askFailedParent},
	}
}

// ask only fails if ctx is done.
func (r *run) ask(ctx context.Context) error {
	all := steps()
	for i, s := range all {
		r.Say(fmt.Sprintf("%d of %d: %s", i+1, len(all), s.title))
		err := s.do(r, ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, q := range s.questions {
			if err != nil && r.findings[q].Answer == "" {
				r.settle(q, "", err.Error())
			}
		}
	}
	return nil
}

const (
	poolWrite     = "pool of IP addresses, one machine in service"
	balancerWrite = "load balancer with a pool of IP addresses, one machine in service"
	nicPoolWrite  = "pool of a network interface, its machine in service"
)

// readBalancer caches until the next write.
func (r *run) readBalancer(ctx context.Context) (balancer, pool Object, err error) {
	if r.shown == nil {
		if r.shown, err = r.look(ctx, r.balancer(byAddress)); err != nil {
			return nil, nil, err
		}
	}
	if pool = poolOf(r.shown, membersPool); pool == nil {
		return nil, nil, fmt.Errorf("the load balancer shows no pool %s", membersPool)
	}
	return r.shown, pool, nil
}

func saw(a behaviour.Answer, reason string) string {
	if a == "" {
		return reason
	}
	return string(a)
}
