// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/behaviour"

// Azure completes some writes at once: those that change nothing, and those that need no
// programming.

// doneAtOnce reports whether a PUT completes at once. found is the previous state, "" for a new
// resource.
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

// keepsEtag reports whether an unchanged PUT retains the etag: true for virtual networks, false for
// subnets and public IPs. Other types except load balancers are unknown.
func keepsEtag(p *proposal, b behaviour.Behaviour) bool {
	switch {
	case !p.repeats:
		return false
	case p.id.root == loadBalancerKind:
		return b.UnchangedWriteEtag == behaviour.Kept
	}
	return p.id.root == virtualNetworkKind && p.id.child == nil
}

// repeated reports whether a request changes nothing. sent is the stored form of its body.
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

// withEntries returns a pool with the addresses that it shows.
func (e *Emulator) withEntries(id resourceID, body fields) fields {
	if id.child != poolKind {
		return body
	}
	return with(body, "properties", with(properties(body), addresses, array(entriesOf(e.index(), id, body))))
}

// sameContent compares the visible content of two bodies; null equals absent.
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

// within reports whether b has all visible content of a.
func within(a, b fields) bool {
	for k, v := range a {
		if k != originKey && v != nil && !sameContent(v, b[k]) {
			return false
		}
	}
	return true
}

// visible counts the visible properties of an object.
func visible(m fields) (n int) {
	for k, v := range m {
		if k != originKey && v != nil {
			n++
		}
	}
	return n
}
