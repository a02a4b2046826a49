// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"

	"weir.dev/weir/lab/armemu/schema"
)

// OlderVersion is the behavior for a PUT with an api-version older than a property of the
// resource.
type OlderVersion string

// The behaviors.
const (
	// RejectOlder answers 400 UpdateOnResourceNotAllowedWithApiVersion.
	RejectOlder OlderVersion = "reject"
	// ResetOlder removes the property.
	ResetOlder OlderVersion = "reset"
	// KeepOlder keeps the property.
	KeepOlder OlderVersion = "keep"
)

func (x *exchange) version() string { return x.req.URL.Query().Get("api-version") }

// refuseOlder rejects a PUT with a property newer than its api-version, or of a resource that has
// one.
func (e *Emulator) refuseOlder(x *exchange, p *proposal) *Problem {
	if p.on != KindPut || p.id.root.namespace != network {
		return nil
	}
	body, err := x.object()
	if err != nil {
		return nil
	}
	if newer, found := schema.NewerThan(p.id.typeName(), x.version(), body); found {
		leaf := newer.Property[strings.LastIndex(newer.Property, ".")+1:]
		return bad(strings.ToUpper(leaf[:1])+leaf[1:]+"CannotBeSpecifiedForApiVersion",
			fmt.Sprintf("Property %s of resource %s cannot be specified for API version %s. It needs API version %s or later.", newer.Property, p.id, x.version(), newer.Detail))
	}
	if p.id.child != nil || e.opts.OlderVersion == ResetOlder {
		return nil
	}
	newer, found := schema.NewerThan(p.id.typeName(), x.version(), p.before)
	switch {
	case !found:
		return nil
	case e.opts.OlderVersion == KeepOlder:
		p.root, _ = schema.KeepNewer(p.id.typeName(), x.version(), p.before, p.root).(fields)
		return nil
	}
	return bad("UpdateOnResourceNotAllowedWithApiVersion", fmt.Sprintf(
		"Resource %s cannot be updated using API version %s since it uses the property %s which has been set using a higher API version %s.",
		p.id, x.version(), newer.Property, newer.Detail))
}

// hideNewer removes properties newer than the api-version from a response.
func (x *exchange) hideNewer() {
	body, isObject := x.body.(fields)
	if !isObject || x.route.id.root == nil || x.route.namespace != network {
		return
	}
	id := x.route.id
	if x.route.kind == KindList {
		if x.route.list != nil {
			id = id.withChild(x.route.list, "")
		}
		list, _ := body["value"].([]any)
		for i, item := range list {
			list[i] = schema.WithoutNewer(id.typeName(), x.version(), item)
		}
		return
	}
	x.body = schema.WithoutNewer(id.typeName(), x.version(), body)
}
