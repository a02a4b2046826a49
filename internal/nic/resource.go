// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"strings"

	"weir.dev/weir/internal/lb"
)

// Resource is the target of one write: a network interface, a uniform scale set's model, or an
// instance.
type Resource struct {
	ID lb.ResourceID
	// Instance is empty for the model.
	Instance string
}

// Kind is the kind of a Resource.
type Kind string

// Kinds of resources.
const (
	KindInterface Kind = "network interface"
	KindModel     Kind = "scale set"
	KindInstance  Kind = "instance"
)

// Kind returns the kind of the resource.
func (r Resource) Kind() Kind {
	switch {
	case !strings.EqualFold(r.ID.Type, lb.TypeScaleSet):
		return KindInterface
	case r.Instance == "":
		return KindModel
	}
	return KindInstance
}

// Key is equal for equal resources.
func (r Resource) Key() string {
	if r.Instance == "" {
		return r.ID.Key()
	}
	return r.ID.Key() + "/virtualmachines/" + r.Instance
}

// WorkerKey is equal for resources that must be written one at a time: Azure answers concurrent writes
// of a scale set with 409.
func (r Resource) WorkerKey() string { return r.ID.Key() }

// String is used in messages.
func (r Resource) String() string {
	switch r.Kind() {
	case KindModel:
		return "scale set " + r.ID.Name
	case KindInstance:
		return "instance " + r.Instance + " of scale set " + r.ID.Name
	}
	return "network interface " + r.ID.Name
}
