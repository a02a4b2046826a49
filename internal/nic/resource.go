// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"strings"

	"weir.dev/weir/internal/lb"
)

// Resource is what one request writes: a network interface, the model of a uniform scale set, or
// one of its instances.
type Resource struct {
	// ID is that of the network interface or of the scale set.
	ID lb.ResourceID
	// Instance is that of the scale set; empty for the model.
	Instance string
}

// Kind is what sort of resource is written.
type Kind string

// The kinds.
const (
	KindInterface Kind = "network interface"
	KindModel     Kind = "scale set"
	KindInstance  Kind = "instance"
)

// Kind returns what sort of resource it is.
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

// Lane is equal for resources that are written one after the other. A scale set and its instances
// share one: Azure answers 409 to all but one of the requests that change one scale set at a time.
func (r Resource) Lane() string { return r.ID.Key() }

// String is for people.
func (r Resource) String() string {
	switch r.Kind() {
	case KindModel:
		return "scale set " + r.ID.Name
	case KindInstance:
		return "instance " + r.Instance + " of scale set " + r.ID.Name
	}
	return "network interface " + r.ID.Name
}
