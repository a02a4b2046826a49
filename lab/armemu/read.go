// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strconv"
)

func (e *Emulator) getResource(x *exchange) *Problem {
	if parent, below := x.route.id.parentID(); below && e.aggregates[parent.key()] == nil {
		return resourceNotFound(parent)
	}
	if problem := validateInstanceID(x.route.id); problem != nil {
		return problem
	}
	agg := e.aggregates[x.route.id.rootKey()]
	if agg == nil || !agg.hasResource(x.route.id) || e.isHidden(agg) {
		return resourceNotFound(x.route.id)
	}
	x.status, x.body = http.StatusOK, e.renderExpanded(agg, x.route.id, x.req.URL.Query().Get("$expand"))
	x.header.Set("Etag", agg.etag)
	return nil
}

func (e *Emulator) isHidden(agg *aggregate) bool {
	return e.opts.HideDeleted && agg.op != nil && agg.op.remove && agg.op.target.child == nil && agg.op.problem == nil
}

func (e *Emulator) listResources(x *exchange) *Problem {
	r := x.route
	values := []any{}
	parent, below := r.id.parentID()
	of, problem := parseFilter(r, x.req.URL.Query().Get("$filter"))
	if problem != nil {
		return problem
	}
	switch {
	case r.list != nil:
		agg := e.aggregates[r.id.rootKey()]
		if agg == nil {
			return resourceNotFound(r.id)
		}
		for _, c := range objectList(propertyFields(agg.body), r.list.collection) {
			values = append(values, agg.renderResource(r.id.withChild(r.list, stringField(c, "name")), e.references()))
		}
	case below && e.aggregates[parent.key()] == nil:
		return resourceNotFound(parent)
	case below:
		for _, agg := range e.scaleSetInstances(parent) {
			values = append(values, e.renderExpanded(agg, agg.id, ""))
		}
	default:
		for _, agg := range e.sortedAggregates() {
			if agg.id.root == r.id.root && sameName(agg.id.subscription, r.id.subscription) &&
				!e.isHidden(agg) && (r.id.group == "" || sameName(agg.id.group, r.id.group)) && of(agg) {
				values = append(values, e.renderExpanded(agg, agg.id, ""))
			}
		}
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	return nil
}

func resourceNotFound(id resourceID) *Problem {
	if _, below := id.parentID(); below {
		return &Problem{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("Resource %s not found.", id)}
	}
	return notFound("ResourceNotFound", fmt.Sprintf(
		"The Resource '%s/%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		id.typeName(), id.name, id.group))
}

func validateInstanceID(id resourceID) *Problem {
	if id.root != instanceKind {
		return nil
	}
	if _, err := strconv.ParseUint(id.name, 10, 32); err == nil {
		return nil
	}
	return &Problem{
		Status: http.StatusBadRequest, Code: "InvalidParameter",
		Message: fmt.Sprintf("The value '%s' of parameter 'instanceId' is invalid: it is no number.", id.name),
	}
}
