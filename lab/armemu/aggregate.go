// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"strings"
)

// Provisioning states.
const (
	stateSucceeded = "Succeeded"
	stateUpdating  = "Updating"
	stateDeleting  = "Deleting"
	stateFailed    = "Failed"
)

// aggregate is one resource with its own etag, such as a load balancer with its children.
type aggregate struct {
	id   resourceID
	body fields // as stored: without IDs, etags, states and back-references
	etag string
	guid string
	// state is the provisioning state of touched, the resource last written; all others are
	// Succeeded.
	state   string
	touched resourceID
	op      *operation // running, or nil
	last    string     // name of the last operation
	// model is the scale set model last applied to an instance.
	model string
}

// has reports whether the aggregate contains the resource.
func (a *aggregate) has(id resourceID) bool {
	return id.child == nil || findChild(a.body, id) != nil
}

func findChild(root fields, id resourceID) fields {
	list := objects(properties(root), id.child.collection)
	if i := indexByName(list, id.childName); i >= 0 {
		return list[i]
	}
	return nil
}

// withChildBody returns root with the child replaced or appended; a nil body removes it.
func withChildBody(root fields, id resourceID, body fields) fields {
	list := objects(properties(root), id.child.collection)
	i := indexByName(list, id.childName)
	switch {
	case body == nil && i >= 0:
		list = append(list[:i:i], list[i+1:]...)
	case body != nil && i >= 0:
		list[i] = with(body, "name", text(list[i], "name"))
	case body != nil:
		list = append(list, body)
	}
	return with(root, "properties", with(properties(root), id.child.collection, array(list)))
}

// keepServerState copies server-managed state from before to after.
func keepServerState(kind *rootKind, before, after fields) fields {
	for _, key := range kind.kept {
		if v, ok := properties(before)[key]; ok {
			after = with(after, "properties", with(properties(after), key, v))
		}
	}
	if kind == instanceKind {
		after = keepInstanceAddresses(before, after)
	}
	if kind.configs != nil {
		after = keepPrivateAddresses(kind.configs, before, after)
	}
	for _, k := range kind.children {
		if len(k.kept) == 0 {
			continue
		}
		list := objects(properties(after), k.collection)
		old := objects(properties(before), k.collection)
		for i, c := range list {
			if j := indexByName(old, text(c, "name")); j >= 0 {
				list[i] = keepProperties(k, old[j], c)
			}
		}
		after = with(after, "properties", with(properties(after), k.collection, array(list)))
	}
	return after
}

func keepProperties(k *childKind, before, after fields) fields {
	for _, key := range k.kept {
		if v, ok := properties(before)[key]; ok {
			after = with(after, "properties", with(properties(after), key, v))
		}
	}
	return after
}

// render returns the resource as a response shows it.
func (a *aggregate) render(id resourceID, from *links) fields {
	back := backReferences(a)
	if id.child != nil {
		return a.renderChild(id.child, findChild(a.body, id), back, from)
	}
	out := with(a.body, "id", a.id.String())
	out["etag"], out["type"] = a.etag, a.id.typeName()
	props := with(properties(a.body), "provisioningState", a.stateOf(a.id))
	if a.guid != "" {
		props["resourceGuid"] = a.guid
	}
	a.renderLinks(props, from)
	for _, k := range a.id.root.children {
		list := objects(props, k.collection)
		for i, c := range list {
			list[i] = a.renderChild(k, c, back, from)
		}
		props[k.collection] = array(list)
	}
	out["properties"] = props
	return out
}

func (a *aggregate) renderChild(k *childKind, c fields, back map[string]fields, from *links) fields {
	id := a.id.withChild(k, text(c, "name"))
	state := a.stateOf(id)
	out := with(c, "id", id.String())
	out["etag"], out["type"] = a.etag, id.typeName()
	props := with(properties(c), "provisioningState", state)
	maps.Copy(props, back[id.key()])
	if k == poolKind {
		list := entriesOf(from, id, c)
		for i, addr := range list {
			list[i] = a.renderAddress(id, addr, state)
		}
		props[addresses] = array(list)
		if nics := from.nicsOf(id, c); len(nics) > 0 {
			props[nicConfigs] = refs(nics)
		}
	}
	out["properties"] = props
	return out
}

func (a *aggregate) renderAddress(pool resourceID, addr fields, state string) fields {
	out := with(addr, "id", pool.String()+"/"+addresses+"/"+text(addr, "name"))
	out["etag"], out["type"] = a.etag, pool.typeName()+"/"+addresses
	delete(out, originKey)
	out["properties"] = with(properties(addr), "provisioningState", state)
	return out
}

// stateOf: writing the root touches all children; writing a child touches the child and the root.
func (a *aggregate) stateOf(id resourceID) string {
	if id.child == nil {
		if a.touched.child != nil && a.state == stateDeleting {
			return stateUpdating
		}
		return a.state
	}
	if a.touched.child == nil || a.touched.key() == id.key() {
		return a.state
	}
	return stateSucceeded
}

// backReferences returns the rules that reference each pool, frontend and probe, by lower-cased ID.
func backReferences(a *aggregate) map[string]fields {
	back := map[string]fields{}
	for _, collection := range []string{lbRules, outRules, natRules, natPools} {
		k := a.id.root.child(collection)
		if k == nil {
			continue
		}
		for _, rule := range objects(properties(a.body), collection) {
			self := fields{"id": a.id.withChild(k, text(rule, "name")).String()}
			for target := range referencedIDs(rule) {
				if back[target] == nil {
					back[target] = fields{}
				}
				list, _ := back[target][collection].([]any)
				back[target][collection] = append(list, self)
			}
		}
	}
	return back
}

// referencedIDs returns the lower-cased IDs that a child of a load balancer references. A pool
// named in both backendAddressPool and backendAddressPools counts once.
func referencedIDs(child fields) map[string]bool {
	ids := map[string]bool{}
	for _, key := range references {
		if id := text(object(properties(child), key), "id"); id != "" {
			ids[strings.ToLower(id)] = true
		}
		for _, ref := range objects(properties(child), key) {
			if id := text(ref, "id"); id != "" {
				ids[strings.ToLower(id)] = true
			}
		}
	}
	return ids
}
