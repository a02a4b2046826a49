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

// Outcome is what came of a plan.
type Outcome struct {
	// Differences are what would change in Azure.
	Differences Differences
	// Owners are the Services by the first part of the names of what is theirs.
	Owners map[string]string
	// Unasked are the Services for which nothing was asked.
	Unasked []Unasked
	// Results are what came of the others.
	Results []balancer.Result
	// NoEffect are the restrictions without effect, by Service.
	NoEffect map[string]string
	// Left are the BackendPools whose pool stays as it is, by name.
	Left []Left
	// Limits are how much of Azure's limits the load balancers and security groups use.
	Limits []Limit
}

// Unasked is a Service for which nothing was asked: it is refused, held or kept.
type Unasked struct {
	Service             string
	Refused, Held, Kept string
}

// Left is a BackendPool whose pool stays as it is.
type Left struct{ BackendPool, Why string }

// Empty reports whether there was nothing to plan for.
func (o Outcome) Empty() bool { return len(o.Results)+len(o.Unasked) == 0 }

// Losers counts the Services that would lose an address that their status shows.
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

// Incomplete is an error if something could not be planned.
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

// OfAzure reports whether it is Azure that kept a request from being planned; if not, an error of
// the result is a refusal.
func OfAzure(r balancer.Result) bool {
	_, is := errors.AsType[*fault.Fault](r.Err)
	return is
}

// Unplanned is why nobody knows what would come of a Service: its load balancer has to become a Standard one before, or
// Azure owes an answer, of its load balancer or of what publishes its frontend. It is nil if the plan has it all.
func Unplanned(r balancer.Result) error {
	if OfAzure(r) || errors.Is(r.Err, publicip.ErrBasic) {
		return r.Err
	}
	if f := fault.From(r.Link.Err); f != nil && f.Code != privatelinkround.CodeBusy {
		return r.Link.Err
	}
	return nil
}

// LinkNotes are what keeps a Service from what it asks of Private Link Services, and what it may not expect
// of them.
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
