// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/lb/behavior"
)

type step struct {
	title      string
	properties []string
	run        func(*run, context.Context) error
}

// allSteps first read the current state, so a failed step does not affect the next. The last one is
// destructive.
func allSteps() []step {
	return []step{
		{"writes of a pool, with and without the right etag", []string{poolIfMatch}, (*run).checkIfMatch},
		{"a write of the load balancer with another address", []string{updateAddresses}, (*run).checkUpdateAddresses},
		{"a write of the load balancer with another admin state", []string{updateStates}, (*run).checkUpdateStates},
		{"a write of the load balancer with one more pool", []string{newPools}, (*run).checkNewPools},
		{"writes that change nothing", []string{noChangeEtag}, (*run).checkNoChange},
		{"writes of what must not be there", []string{ifNoneMatch}, (*run).checkIfNoneMatch},
		{"writes that overlap", []string{overlap}, (*run).checkOverlap},
		{"Down on a network interface", []string{interfaceState}, (*run).checkInterfaceState},
		{"one DNS label on public IPs of both families", []string{labelFamilies}, (*run).checkLabelFamilies},
		{"a load balancer that is Failed", []string{failedParent}, (*run).checkFailedParent},
	}
}

// runSteps only fails if ctx is done.
func (r *run) runSteps(ctx context.Context) error {
	steps := allSteps()
	for i, s := range steps {
		r.Log(fmt.Sprintf("%d of %d: %s", i+1, len(steps), s.title))
		err := s.run(r, ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, q := range s.properties {
			if err != nil && r.results[q].Result == "" {
				r.recordResult(q, "", err.Error())
			}
		}
	}
	return nil
}

const (
	poolWrite         = "pool of IP addresses, one machine in service"
	loadBalancerWrite = "load balancer with a pool of IP addresses, one machine in service"
	nicPoolWrite      = "pool of a network interface, its machine in service"
)

// readLoadBalancer caches until the next write.
func (r *run) readLoadBalancer(ctx context.Context) (balancer, pool Object, err error) {
	if r.cached == nil {
		if r.cached, err = r.readResource(ctx, r.loadBalancer(byAddress)); err != nil {
			return nil, nil, err
		}
	}
	if pool = findPool(r.cached, membersPool); pool == nil {
		return nil, nil, fmt.Errorf("the load balancer shows no pool %s", membersPool)
	}
	return r.cached, pool, nil
}

func resultOrReason(a behavior.Result, reason string) string {
	if a == "" {
		return reason
	}
	return string(a)
}
