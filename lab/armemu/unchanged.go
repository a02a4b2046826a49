// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/behaviour"

// Azure completes some writes at once: those that change nothing, and those that need no
// programming.

// completesAtOnce reports whether a PUT completes at once. found is the previous state, "" for a new
// resource.
func completesAtOnce(p *proposal, found string, m memberKind, machines bool) bool {
	if p.on != KindPut || found != "" && found != stateSucceeded || p.id.root.namespace != network {
		return false
	}
	switch {
	case p.id.root == networkInterfaceKind:
		return !machines
	case p.isUnchanged:
		return true
	}
	return p.id.root == loadBalancerKind && p.id.child == nil && m == noMembers
}

// retainsEtag reports whether an unchanged PUT retains the etag: true for virtual networks, false for
// subnets and public IPs. Other types except load balancers are unknown.
func retainsEtag(p *proposal, b behaviour.Behavior) bool {
	switch {
	case !p.isUnchanged:
		return false
	case p.id.root == loadBalancerKind:
		return b.NoChangeEtag == behaviour.Unchanged
	}
	return p.id.root == virtualNetworkKind && p.id.child == nil
}

// isUnchanged reports whether a request changes nothing. sent is the stored form of its body.
func (e *Emulator) isUnchanged(id resourceID, before, sent fields) bool {
	if before == nil {
		return false
	}
	if id.child != nil {
		before = findChild(before, id)
		return before != nil && equalContent(e.withEntries(id, before), sent)
	}
	if id.root == loadBalancerKind {
		list := objectList(propertyFields(before), pools)
		for i, pool := range list {
			list[i] = e.withEntries(id.withChild(poolKind, stringField(pool, "name")), pool)
		}
		before = withField(before, "properties", withField(propertyFields(before), pools, toArray(list)))
	}
	return equalContent(before, sent)
}

// withEntries returns a pool with the addresses that it shows.
func (e *Emulator) withEntries(id resourceID, body fields) fields {
	if id.child != poolKind {
		return body
	}
	return withField(body, "properties", withField(propertyFields(body), addresses, toArray(poolEntries(e.references(), id, body))))
}

// equalContent compares the visible content of two bodies; null equals absent.
func equalContent(a, b any) bool {
	switch a := a.(type) {
	case fields:
		b, ok := b.(fields)
		return ok && countVisible(a) == countVisible(b) && containsContent(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalContent(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// containsContent reports whether b has all visible content of a.
func containsContent(a, b fields) bool {
	for k, v := range a {
		if k != originKey && v != nil && !equalContent(v, b[k]) {
			return false
		}
	}
	return true
}

// countVisible counts the visible properties of an object.
func countVisible(m fields) (n int) {
	for k, v := range m {
		if k != originKey && v != nil {
			n++
		}
	}
	return n
}
