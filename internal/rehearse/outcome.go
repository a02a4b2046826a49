// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
)

// Outcome is the result of a plan.
type Outcome struct {
	Differences Differences
	// Owners maps resource name prefixes to Services.
	Owners map[string]string
	// Unasked are the Services without a request.
	Unasked []Unasked
	Results []balancer.Result
	// NoEffect maps Services to restrictions without effect.
	NoEffect map[string]string
	// Left are pools left unchanged, sorted by BackendPool.
	Left []Left
	// Limits are how much of Azure's limits the load balancers and security groups use.
	Limits []Limit
}

// Unasked is a Service that is rejected, held or kept.
type Unasked struct {
	Service             string
	Refused, Held, Kept string
}

// Left is a BackendPool with a pool that is left unchanged.
type Left struct{ BackendPool, Why string }

// Empty reports whether there was nothing to plan.
func (o Outcome) Empty() bool { return len(o.Results)+len(o.Unasked) == 0 }

// Losers counts Services that would lose an address.
func (o Outcome) Losers() int {
	n := 0
	for _, r := range o.Results {
		gone := func(a netip.Addr) bool { return !slices.Contains(r.Addresses, a) }
		if r.Desired != nil && r.Err == nil && slices.ContainsFunc(r.Shown, gone) {
			n++
		}
	}
	return n
}

// Incomplete returns an error if the plan is.
func (o Outcome) Incomplete() error {
	var failed []error
	for _, r := range o.Results {
		if err := Unplanned(r); err != nil {
			failed = append(failed, fmt.Errorf("Service %s: %w", r.Service, err))
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

// OfAzure reports whether the error is Azure's; otherwise it is a rejection.
func OfAzure(r balancer.Result) bool {
	_, is := errors.AsType[*fault.Fault](r.Err)
	return is
}

// Unplanned returns why a result is unknown: a Basic load balancer, or no response by Azure; nil if
// complete.
func Unplanned(r balancer.Result) error {
	if OfAzure(r) || errors.Is(r.Err, publicip.ErrBasic) {
		return r.Err
	}
	if f := fault.From(r.Link.Err); f != nil && f.Code != privatelinkround.CodeBusy {
		return r.Link.Err
	}
	return nil
}

// LinkNotes returns problems with Private Link Services.
func LinkNotes(r balancer.Result) []string {
	var notes []string
	if s := r.Link.State; s != nil && !s.Publishes() && Unplanned(r) == nil {
		notes = append(notes, s.Text)
	}
	for _, w := range r.Link.Warnings {
		if !slices.Contains(notes, w.Text) {
			notes = append(notes, w.Text)
		}
	}
	return notes
}
