// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// Changes reports what changes. Adding a Down address changes both.
func (c Change) Changes() (addresses, states bool) {
	return c.add+c.remove > 0, c.alter > 0 || len(c.Downed) > 0
}

func took(before, written, shown []netip.Addr) behaviour.Answer {
	switch {
	case slices.Equal(before, written): // no evidence
		return ""
	case slices.Equal(shown, written):
		return behaviour.Taken
	case slices.Equal(shown, before):
		return behaviour.Ignored
	}
	return ""
}

// downIn returns the Down addresses that todo manages and did not add.
func downIn(p lb.Pool, todo Change) []netip.Addr {
	var down []netip.Addr
	for _, a := range p.Addresses {
		if _, ours := todo.states[a.IP]; ours && a.AdminState == lb.Down && !slices.Contains(todo.added, a.IP) {
			down = append(down, a.IP)
		}
	}
	return sorted(down)
}

// After is a pool before a load balancer write, the change, and a later read.
type After struct {
	Before lb.Pool
	Todo   Change
	Shown  lb.Pool
}

// Overtaken classifies the effect of overtaken writes, by a read after the last one. It is empty
// without evidence, or if another client has written or pools disagree.
func Overtaken(pools []After) behaviour.Answer {
	all := map[bool]int{}
	for _, p := range pools {
		switch addresses, states := p.Todo.Changes(); {
		case !addresses && !states:
		case p.Todo.ShownBy(p.Shown):
			all[true]++
		case slices.Equal(sortedIPs(p.Shown.Addresses), sortedIPs(p.Before.Addresses)) && slices.Equal(downIn(p.Shown, p.Todo), downIn(p.Before, p.Todo)):
			all[false]++
		default:
			return ""
		}
	}
	switch {
	case all[true] > 0 && all[false] == 0:
		return behaviour.Supersede
	case all[false] > 0 && all[true] == 0:
		return behaviour.SupersedeDiscard
	}
	return ""
}

// RefusesOverlap classifies a rejection because another write is running; empty for others.
func RefusesOverlap(f *fault.Fault) behaviour.Answer {
	switch {
	case f == nil || f.Ended:
	case f.Code == "RetryableErrorDueToAnotherOperation":
		return behaviour.Lock
	case f.Code == "AnotherOperationInProgress":
		return behaviour.Conflict
	}
	return ""
}

// Showed classifies the effect of a load balancer write per change. Changes without evidence are
// omitted, also if another client has written or pools disagree.
func Showed(pools []After) map[wholewrite.Change]behaviour.Answer {
	all := map[wholewrite.Change]behaviour.Answer{}
	both := map[wholewrite.Change]bool{}
	add := func(c wholewrite.Change, a behaviour.Answer) {
		both[c] = both[c] || a != "" && all[c] != "" && all[c] != a
		if a != "" {
			all[c] = a
		}
	}
	for _, p := range pools {
		s := p.Shown
		if s.Provisioning == lb.Updating || s.Provisioning == lb.Failed {
			continue
		}
		addresses, states := p.Todo.Changes()
		if addresses {
			add(wholewrite.Addresses, took(sortedIPs(p.Before.Addresses), sortedIPs(p.Todo.Next.Addresses), sortedIPs(s.Addresses)))
		}
		if states {
			add(wholewrite.AdminStates, took(downIn(p.Before, p.Todo), downIn(p.Todo.Next, p.Todo), downIn(s, p.Todo)))
		}
	}
	for c, is := range both {
		if is {
			delete(all, c)
		}
	}
	return all
}
