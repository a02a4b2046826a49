// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// PlanResult is the result of a plan.
type PlanResult struct {
	Changes Changes
	// Owners maps resource name prefixes to Services.
	Owners map[string]string
	// SkippedServices are the Services without a request.
	SkippedServices []SkippedService
	Results         []loadbalancer.Result
	// NoEffect maps Services to restrictions without effect.
	NoEffect map[string]string
	// SkippedPools are pools left unchanged, sorted by BackendPool.
	SkippedPools []SkippedPool
	// Limits are how much of Azure's limits the load balancers and security groups use.
	Limits []plan.LimitUsage
}

// SkippedService is a Service that is rejected, held or kept.
type SkippedService struct {
	Service                                       string
	RejectedReason, BlockedReason, RetainedReason string
}

// SkippedPool is a BackendPool with a pool that is left unchanged.
type SkippedPool struct{ BackendPool, Reason string }

// IsEmpty reports whether there was nothing to plan.
func (p PlanResult) IsEmpty() bool { return len(p.Results)+len(p.SkippedServices) == 0 }

// CountLosses counts Services that would lose an address.
func (p PlanResult) CountLosses() int {
	n := 0
	for _, r := range p.Results {
		isGone := func(a netip.Addr) bool { return !slices.Contains(r.Addresses, a) }
		if r.Desired != nil && r.Err == nil && slices.ContainsFunc(r.StatusAddresses, isGone) {
			n++
		}
	}
	return n
}

// CheckComplete returns an error if the plan is.
func (p PlanResult) CheckComplete() error {
	var failed []error
	for _, r := range p.Results {
		if err := UnknownReason(r); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", service.DescribeOwner(r.Service), err))
		}
	}
	switch more := len(failed) - 1; {
	case more > 0:
		return fmt.Errorf("the plan is not complete: %w (and %d more)", failed[0], more)
	case more == 0:
		return fmt.Errorf("the plan is not complete: %w", failed[0])
	}
	return nil
}

// IsAzureError reports whether the error is Azure's; otherwise it is a rejection.
func IsAzureError(r loadbalancer.Result) bool {
	_, ok := errors.AsType[*armerror.Fault](r.Err)
	return ok
}

// UnknownReason returns why a result is unknown: a Basic load balancer, or no response by Azure; nil if
// complete.
func UnknownReason(r loadbalancer.Result) error {
	if IsAzureError(r) || errors.Is(r.Err, publicip.ErrBasic) {
		return r.Err
	}
	if f := armerror.FromError(r.Link.Err); f != nil && f.Code != privatelink.CodeUpdating {
		return r.Link.Err
	}
	return nil
}

// ListLinkNotes returns problems with Private Link Services.
func ListLinkNotes(r loadbalancer.Result) []string {
	var notes []string
	if s := r.Link.State; s != nil && !s.IsPublished() && UnknownReason(r) == nil {
		notes = append(notes, s.Text)
	}
	for _, w := range r.Link.Warnings {
		if !slices.Contains(notes, w.Text) {
			notes = append(notes, w.Text)
		}
	}
	return notes
}
