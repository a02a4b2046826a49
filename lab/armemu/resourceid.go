// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/http"
	"strings"
)

// resourceID is a parsed ARM ID. Names keep their case; keys are lower case.
type resourceID struct {
	subscription, group string
	root                *rootKind
	parent              string // empty unless root.parent is set
	name                string
	child               *childKind // nil for the root itself
	childName           string
}

func (r resourceID) rootID() resourceID {
	r.child, r.childName = nil, ""
	return r
}

func (r resourceID) withChild(k *childKind, name string) resourceID {
	r.child, r.childName = k, name
	return r
}

func (r resourceID) String() string {
	s := "/subscriptions/" + r.subscription + "/resourceGroups/" + r.group +
		"/providers/" + r.root.namespace
	if r.root.parent != nil {
		s += "/" + r.root.parent.collection + "/" + r.parent
	}
	s += "/" + r.root.collection + "/" + r.name
	if r.child != nil {
		s += "/" + r.child.collection + "/" + r.childName
	}
	return s
}

// parentID: the root of a child, or the parent of a nested root.
func (r resourceID) parentID() (parent resourceID, ok bool) {
	if r.child != nil {
		return r.rootID(), true
	}
	return resourceID{subscription: r.subscription, group: r.group, root: r.root.parent, name: r.parent}, r.root.parent != nil
}

func (r resourceID) key() string     { return strings.ToLower(r.String()) }
func (r resourceID) rootKey() string { return r.rootID().key() }

func (r resourceID) typeName() string {
	if r.child != nil {
		return r.root.typeName() + "/" + r.child.collection
	}
	return r.root.typeName()
}

func (r resourceID) deleteStatus() int {
	if r.root == networkInterfaceKind {
		return http.StatusOK
	}
	return http.StatusAccepted
}

func (r resourceID) leafName() string {
	if r.child != nil {
		return r.childName
	}
	return r.name
}
