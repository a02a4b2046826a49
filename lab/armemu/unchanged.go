// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/behaviour"

// Azure is done with some writes when it answers them: those that repeat what is there, and
// those that leave it nothing to program.

// doneAtOnce tells whether a PUT is answered Succeeded. running is the state that it finds,
// empty for what is new.
func doneAtOnce(p *proposal, found string, m members, machines bool) bool {
	if p.on != KindPut || found != "" && found != stateSucceeded || p.id.root.namespace != network {
		return false
	}
	switch {
	case p.id.root == networkInterfaceKind:
		return !machines
	case p.repeats:
		return true
	}
	return p.id.root == loadBalancerKind && p.id.child == nil && m == noMembers
}

// keepsEtag tells whether a PUT that repeats what is there leaves the etag as it is: whole
// virtual networks keep theirs, their subnets and public IPs do not. Of other types but load
// balancers nothing is known.
func keepsEtag(p *proposal, b behaviour.Behaviour) bool {
	switch {
	case !p.repeats:
		return false
	case p.id.root == loadBalancerKind:
		return b.UnchangedWriteEtag == behaviour.Kept
	}
	return p.id.root == virtualNetworkKind && p.id.child == nil
}

// repeated tells whether a request asks for what is there: all that it says is shown, and
// nothing else is. sent is the body as it would be stored if Azure took all of it.
func (e *Emulator) repeated(id resourceID, before, sent fields) bool {
	if before == nil {
		return false
	}
	if id.child != nil {
		before = findChild(before, id)
		return before != nil && sameContent(e.withEntries(id, before), sent)
	}
	if id.root == loadBalancerKind {
		list := objects(properties(before), pools)
		for i, pool := range list {
			list[i] = e.withEntries(id.withChild(poolKind, text(pool, "name")), pool)
		}
		before = with(before, "properties", with(properties(before), pools, array(list)))
	}
	return sameContent(before, sent)
}

// withEntries is a pool with the addresses that it shows.
func (e *Emulator) withEntries(id resourceID, body fields) fields {
	if id.child != poolKind {
		return body
	}
	return with(body, "properties", with(properties(body), addresses, array(entriesOf(e.index(), id, body))))
}

// sameContent compares what clients see of two bodies; null is absent.
func sameContent(a, b any) bool {
	switch a := a.(type) {
	case fields:
		b, ok := b.(fields)
		return ok && visible(a) == visible(b) && within(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameContent(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// within tells whether b has all that clients see of a.
func within(a, b fields) bool {
	for k, v := range a {
		if k != originKey && v != nil && !sameContent(v, b[k]) {
			return false
		}
	}
	return true
}

// visible is how much of an object clients see.
func visible(m fields) (n int) {
	for k, v := range m {
		if k != originKey && v != nil {
			n++
		}
	}
	return n
}
