// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"strings"
)

const (
	stateSucceeded = "Succeeded"
	stateUpdating  = "Updating"
	stateDeleting  = "Deleting"
	stateFailed    = "Failed"
)

// aggregate is a root resource with its children; they share an etag.
type aggregate struct {
	id   resourceID
	body fields // as stored: without IDs, etags, states and back-references
	etag string
	guid string
	// state applies to touched, the resource last written; all others are Succeeded.
	state         string
	lastWritten   resourceID
	op            *operation // running, or nil
	lastOperation string
	// model is the scale set model last applied to an instance.
	model string
}

func (a *aggregate) hasResource(id resourceID) bool {
	return id.child == nil || findChild(a.body, id) != nil
}

func findChild(root fields, id resourceID) fields {
	list := objectList(propertyFields(root), id.child.collection)
	if i := indexByName(list, id.childName); i >= 0 {
		return list[i]
	}
	return nil
}

// withChildBody replaces or appends a child; a nil body removes it.
func withChildBody(root fields, id resourceID, body fields) fields {
	list := objectList(propertyFields(root), id.child.collection)
	i := indexByName(list, id.childName)
	switch {
	case body == nil && i >= 0:
		list = append(list[:i:i], list[i+1:]...)
	case body != nil && i >= 0:
		list[i] = withField(body, "name", stringField(list[i], "name"))
	case body != nil:
		list = append(list, body)
	}
	return withField(root, "properties", withField(propertyFields(root), id.child.collection, toArray(list)))
}

func retainServerState(kind *rootKind, before, after fields) fields {
	for _, key := range kind.serverState {
		if v, ok := propertyFields(before)[key]; ok {
			after = withField(after, "properties", withField(propertyFields(after), key, v))
		}
	}
	if kind == instanceKind {
		after = retainInstanceAddresses(before, after)
	}
	if kind.ipConfigs != nil {
		after = retainPrivateAddresses(kind.ipConfigs, before, after)
	}
	for _, k := range kind.children {
		if len(k.serverState) == 0 {
			continue
		}
		list := objectList(propertyFields(after), k.collection)
		old := newNameIndex(objectList(propertyFields(before), k.collection))
		for i, c := range list {
			if before, found := lookUpName(old, stringField(c, "name")); found {
				list[i] = retainProperties(k, before, c)
			}
		}
		after = withField(after, "properties", withField(propertyFields(after), k.collection, toArray(list)))
	}
	return after
}

func retainProperties(k *childKind, before, after fields) fields {
	for _, key := range k.serverState {
		if v, ok := propertyFields(before)[key]; ok {
			after = withField(after, "properties", withField(propertyFields(after), key, v))
		}
	}
	return after
}

func (a *aggregate) renderResource(id resourceID, from *referenceIndex) fields {
	back := backReferences(a)
	if id.child != nil {
		return a.renderChild(id.child, findChild(a.body, id), back, from)
	}
	out := withField(a.body, "id", a.id.String())
	out["etag"], out["type"] = a.etag, a.id.typeName()
	props := withField(propertyFields(a.body), "provisioningState", a.resourceState(a.id))
	if a.guid != "" {
		props["resourceGuid"] = a.guid
	}
	a.renderLinks(props, from)
	for _, k := range a.id.root.children {
		list := objectList(props, k.collection)
		for i, c := range list {
			list[i] = a.renderChild(k, c, back, from)
		}
		props[k.collection] = toArray(list)
	}
	out["properties"] = props
	return out
}

func (a *aggregate) renderChild(k *childKind, c fields, back map[string]fields, from *referenceIndex) fields {
	id := a.id.withChild(k, stringField(c, "name"))
	state := a.resourceState(id)
	out := withField(c, "id", id.String())
	out["etag"], out["type"] = a.etag, id.typeName()
	props := withField(propertyFields(c), "provisioningState", state)
	maps.Copy(props, back[id.key()])
	if k == poolKind {
		list := poolEntries(from, id, c)
		path, typeName := id.String()+"/"+addresses+"/", id.typeName()+"/"+addresses
		for i, addr := range list {
			list[i] = a.renderAddress(path, typeName, addr, state)
		}
		props[addresses] = toArray(list)
		if nics := from.poolNICs(id, c); len(nics) > 0 {
			props[nicConfigs] = toReferences(nics)
		}
	}
	out["properties"] = props
	return out
}

func (a *aggregate) renderAddress(path, typeName string, addr fields, state string) fields {
	out := withField(addr, "id", path+stringField(addr, "name"))
	out["etag"], out["type"] = a.etag, typeName
	delete(out, originKey)
	out["properties"] = withField(propertyFields(addr), "provisioningState", state)
	return out
}

// resourceState: writing the root touches all children; writing a child touches the child and the root.
func (a *aggregate) resourceState(id resourceID) string {
	if id.child == nil {
		if a.lastWritten.child != nil && a.state == stateDeleting {
			return stateUpdating
		}
		return a.state
	}
	if a.lastWritten.child == nil || a.lastWritten.key() == id.key() {
		return a.state
	}
	return stateSucceeded
}

func backReferences(a *aggregate) map[string]fields {
	back := map[string]fields{}
	for _, collection := range []string{lbRules, outRules, natRules, natPools} {
		k := a.id.root.findChild(collection)
		if k == nil {
			continue
		}
		for _, rule := range objectList(propertyFields(a.body), collection) {
			self := fields{"id": a.id.withChild(k, stringField(rule, "name")).String()}
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

// referencedIDs returns lower-cased IDs. A pool named in both backendAddressPool and
// backendAddressPools counts once.
func referencedIDs(child fields) map[string]bool {
	ids := map[string]bool{}
	for _, key := range references {
		if id := stringField(objectField(propertyFields(child), key), "id"); id != "" {
			ids[strings.ToLower(id)] = true
		}
		for _, ref := range objectList(propertyFields(child), key) {
			if id := stringField(ref, "id"); id != "" {
				ids[strings.ToLower(id)] = true
			}
		}
	}
	return ids
}
