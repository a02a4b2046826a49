// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
)

// loadBalancer is one load balancer, and what it takes to bring it level. It is of one goroutine.
type loadBalancer struct {
	id         lb.LoadBalancerID
	cfg        *Config
	placements *placements
	ips        *publicip.Keeper
	contests   *contest.Contests
	inProgress *contest.InProgress
	refusals   *refusals
	former     *former // nil without a security group
	report     reporter
}

// reporter hears what became of a job's step.
type reporter interface {
	// next is for one that is done.
	next(j *job)
	// fail ends a job. One that the end of the process stopped is dropped without a word.
	fail(ctx context.Context, j *job, err error)
	// overtaken counts writes of a resource that were tried twice.
	overtaken(resource string) func(settled bool)
}

// What a round writes. These are labels of a metric.
const (
	resourceBalancer      = "load balancer"
	resourcePublicIP      = "public IP"
	resourceSecurityGroup = "security group"
)
