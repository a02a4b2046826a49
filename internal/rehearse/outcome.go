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
	// Differences are the changes in Azure.
	Differences Differences
	// Owners maps resource name prefixes to Services.
	Owners map[string]string
	// Unasked are the Services without a request.
	Unasked []Unasked
	// Results are the results of the requests.
	Results []balancer.Result
	// NoEffect maps Services to source restrictions without effect.
	NoEffect map[string]string
	// Left are the BackendPools whose pool is left unchanged, sorted by name.
	Left []Left
}

// Unasked is a Service without a request: rejected, held or kept.
type Unasked struct {
	Service             string
	Refused, Held, Kept string
}

// Left is a BackendPool whose pool is left unchanged.
type Left struct{ BackendPool, Why string }

// Empty reports whether there was nothing to plan.
func (o Outcome) Empty() bool { return len(o.Results)+len(o.Unasked) == 0 }

// Losers returns the number of Services that would lose an address in their status.
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

// Incomplete returns an error if something could not be planned.
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

// OfAzure reports whether the result's error came from Azure; otherwise it is a rejection.
func OfAzure(r balancer.Result) bool {
	_, is := errors.AsType[*fault.Fault](r.Err)
	return is
}

// Unplanned returns why the result for a Service is unknown: it has a Basic load balancer, or Azure
// did not respond about its load balancer or Private Link Service. It is nil if the plan is
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

// LinkNotes returns what prevents a Service's Private Link Service, and warnings about it.
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
