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

// ChangedKinds reports what changes. Adding a Down address changes both.
func (c Change) ChangedKinds() (addresses, states bool) {
	return c.addCount+c.removeCount > 0, c.updateCount > 0 || len(c.MarkedDown) > 0
}

func classifyEffect(before, written, shown []netip.Addr) behaviour.Result {
	switch {
	case slices.Equal(before, written): // no evidence
		return ""
	case slices.Equal(shown, written):
		return behaviour.Accepted
	case slices.Equal(shown, before):
		return behaviour.Ignored
	}
	return ""
}

// downAddresses returns the Down addresses that todo manages and did not add.
func downAddresses(p lb.Pool, todo Change) []netip.Addr {
	var down []netip.Addr
	for _, a := range p.Addresses {
		if _, ours := todo.managedStates[a.IP]; ours && a.AdminState == lb.Down && !slices.Contains(todo.addedIPs, a.IP) {
			down = append(down, a.IP)
		}
	}
	return sortIPs(down)
}

// WrittenPool is a pool before a load balancer write, the change, and a later read.
type WrittenPool struct {
	Before   lb.Pool
	Change   Change
	ReadBack lb.Pool
}

// ClassifyOverlap classifies the effect of overtaken writes, by a read after the last one. It is empty
// without evidence, or if another client has written or pools disagree.
func ClassifyOverlap(pools []WrittenPool) behaviour.Result {
	all := map[bool]int{}
	for _, p := range pools {
		switch addresses, states := p.Change.ChangedKinds(); {
		case !addresses && !states:
		case p.Change.IsAppliedIn(p.ReadBack):
			all[true]++
		case slices.Equal(sortedIPs(p.ReadBack.Addresses), sortedIPs(p.Before.Addresses)) && slices.Equal(downAddresses(p.ReadBack, p.Change), downAddresses(p.Before, p.Change)):
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

// ClassifyRejection classifies a rejection because another write is running; empty for others.
func ClassifyRejection(f *fault.Fault) behaviour.Result {
	switch {
	case f == nil || f.OperationFailed:
	case f.Code == "RetryableErrorDueToAnotherOperation":
		return behaviour.Lock
	case f.Code == "AnotherOperationInProgress":
		return behaviour.Conflict
	}
	return ""
}

// ClassifyEffects classifies the effect of a load balancer write per change. Changes without evidence are
// omitted, also if another client has written or pools disagree.
func ClassifyEffects(pools []WrittenPool) map[wholewrite.Change]behaviour.Result {
	all := map[wholewrite.Change]behaviour.Result{}
	both := map[wholewrite.Change]bool{}
	add := func(c wholewrite.Change, a behaviour.Result) {
		both[c] = both[c] || a != "" && all[c] != "" && all[c] != a
		if a != "" {
			all[c] = a
		}
	}
	for _, p := range pools {
		s := p.ReadBack
		if s.Provisioning == lb.Updating || s.Provisioning == lb.Failed {
			continue
		}
		addresses, states := p.Change.ChangedKinds()
		if addresses {
			add(wholewrite.Addresses, classifyEffect(sortedIPs(p.Before.Addresses), sortedIPs(p.Change.Next.Addresses), sortedIPs(s.Addresses)))
		}
		if states {
			add(wholewrite.AdminStates, classifyEffect(downAddresses(p.Before, p.Change), downAddresses(p.Change.Next, p.Change), downAddresses(s, p.Change)))
		}
	}
	for c, is := range both {
		if is {
			delete(all, c)
		}
	}
	return all
}
