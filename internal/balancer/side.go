// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/fault"
)

// side runs a bounded number of calls side by side.
type side struct {
	slots chan struct{}
	all   sync.WaitGroup
}

func newSide(most int) *side { return &side{slots: make(chan struct{}, most)} }

func (s *side) run(call func()) {
	s.slots <- struct{}{}
	s.all.Go(func() {
		defer func() { <-s.slots }()
		call()
	})
}

func (s *side) wait() { s.all.Wait() }

// errLeaseLost says that a write was not made.
var errLeaseLost = &fault.Fault{
	Class: fault.Retriable, Code: "LeaseLost", Reason: "lease",
	Err: errors.New("the resource lease is lost, or ends before a write would"),
}

// leaseAgainAfter is when the lease is asked for again that somebody else has.
const leaseAgainAfter = 30 * time.Second

// leased does something while the resource lease is held.
func (w *worker) leased(ctx context.Context, do func(valid func() bool)) error {
	if w.cfg.Lease == nil {
		do(func() bool { return ctx.Err() == nil })
		return nil
	}
	valid, leave, err := w.cfg.Lease.Enter(ctx)
	if err != nil {
		return &fault.Fault{Class: fault.Retriable, Code: "LeaseHeld", Reason: "lease", RetryAt: time.Now().Add(leaseAgainAfter), Err: err}
	}
	defer leave()
	do(valid)
	return nil
}

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }

func containsFold(list []string, name string) bool {
	for _, item := range list {
		if strings.EqualFold(item, name) {
			return true
		}
	}
	return false
}
