// SPDX-License-Identifier: Apache-2.0

package armemu

import "weir.dev/weir/internal/lb/behavior"

// Azure completes writes at once if they change nothing or need no programming.

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

// retainsEtag is true for virtual networks, false for subnets and public IPs. Most other types are
// unknown.
func retainsEtag(p *proposal, b behavior.Behavior) bool {
	switch {
	case !p.isUnchanged:
		return false
	case p.id.root == loadBalancerKind:
		return b.NoChangeEtag == behavior.Unchanged
	}
	return p.id.root == virtualNetworkKind && p.id.child == nil
}

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

func (e *Emulator) withEntries(id resourceID, body fields) fields {
	if id.child != poolKind {
		return body
	}
	return withField(body, "properties", withField(propertyFields(body), addresses, toArray(poolEntries(e.references(), id, body))))
}

// equalContent treats null as absent.
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

func containsContent(a, b fields) bool {
	for k, v := range a {
		if k != originKey && v != nil && !equalContent(v, b[k]) {
			return false
		}
	}
	return true
}

func countVisible(m fields) (n int) {
	for k, v := range m {
		if k != originKey && v != nil {
			n++
		}
	}
	return n
}
