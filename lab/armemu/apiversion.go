// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"

	"weir.dev/weir/lab/armemu/schema"
)

// OlderVersionPolicy is the behavior for a PUT with an api-version older than a property.
type OlderVersionPolicy string

// The behaviors.
const (
	// RejectOlderVersion answers 400 UpdateOnResourceNotAllowedWithApiVersion.
	RejectOlderVersion OlderVersionPolicy = "reject"
	// ResetNewProperties removes the property.
	ResetNewProperties OlderVersionPolicy = "reset"
	// KeepNewProperties keeps the property.
	KeepNewProperties OlderVersionPolicy = "keep"
)

func (x *exchange) apiVersion() string { return x.req.URL.Query().Get("api-version") }

func (e *Emulator) rejectOlderVersion(x *exchange, p *proposal) *Problem {
	if p.on != KindPut || p.id.root.namespace != network {
		return nil
	}
	body, err := x.decodeObject()
	if err != nil {
		return nil
	}
	if newer, found := schema.FindNewer(p.id.typeName(), x.apiVersion(), body); found {
		leaf := newer.Property[strings.LastIndex(newer.Property, ".")+1:]
		return badRequest(strings.ToUpper(leaf[:1])+leaf[1:]+"CannotBeSpecifiedForApiVersion",
			fmt.Sprintf("Property %s of resource %s cannot be specified for API version %s. It needs API version %s or later.", newer.Property, p.id, x.apiVersion(), newer.Detail))
	}
	if problem := rejectServiceSKU(x.apiVersion(), p); problem != nil {
		return problem
	}
	if p.id.child != nil || e.opts.OlderVersion == ResetNewProperties {
		return nil
	}
	newer, found := schema.FindNewer(p.id.typeName(), x.apiVersion(), p.before)
	switch {
	case !found:
		return nil
	case e.opts.OlderVersion == KeepNewProperties:
		p.root, _ = schema.RetainNewer(p.id.typeName(), x.apiVersion(), p.before, p.root).(fields)
		return nil
	}
	return badRequest("UpdateOnResourceNotAllowedWithApiVersion", fmt.Sprintf(
		"Resource %s cannot be updated using API version %s since it uses the property %s which has been set using a higher API version %s.",
		p.id, x.apiVersion(), newer.Property, newer.Detail))
}

// serviceSKU is the SKU of container-native load balancers, which serviceVersion introduced.
const serviceSKU, serviceVersion = "Service", "2025-09-01"

// rejectServiceSKU rejects an api-version that does not know the SKU.
func rejectServiceSKU(version string, p *proposal) *Problem {
	if p.id.root != loadBalancerKind || version >= serviceVersion {
		return nil
	}
	switch {
	case p.before != nil && sameName(skuName(p.before), serviceSKU):
		return badRequest("UpdateOnResourceNotAllowedWithApiVersion", fmt.Sprintf(
			"Resource %s cannot be updated using API version %s since it uses the property sku.name %s which has been set using a higher API version %s.",
			p.id, version, serviceSKU, serviceVersion))
	case p.id.child == nil && sameName(skuName(p.root), serviceSKU):
		return badRequest("SkuCannotBeSpecifiedForApiVersion",
			fmt.Sprintf("Sku %s of resource %s cannot be specified for API version %s. It needs API version %s or later.", serviceSKU, p.id, version, serviceVersion))
	}
	return nil
}

func (x *exchange) removeNewProperties() {
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
			list[i] = schema.RemoveNewer(id.typeName(), x.apiVersion(), item)
		}
		return
	}
	x.body = schema.RemoveNewer(id.typeName(), x.apiVersion(), body)
}
