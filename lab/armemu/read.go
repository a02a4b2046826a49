// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strconv"
)

func (e *Emulator) get(x *exchange) *Problem {
	if parent, below := x.route.id.above(); below && e.aggregates[parent.key()] == nil {
		return missing(parent)
	}
	if problem := badInstance(x.route.id); problem != nil {
		return problem
	}
	agg := e.aggregates[x.route.id.rootKey()]
	if agg == nil || !agg.has(x.route.id) || e.hides(agg) {
		return missing(x.route.id)
	}
	x.status, x.body = http.StatusOK, e.shown(agg, x.route.id, x.req.URL.Query().Get("$expand"))
	x.header.Set("Etag", agg.etag)
	return nil
}

// hides reports whether a resource is hidden because it is being deleted.
func (e *Emulator) hides(agg *aggregate) bool {
	return e.opts.HideDeleted && agg.op != nil && agg.op.remove && agg.op.target.child == nil && agg.op.problem == nil
}

func (e *Emulator) list(x *exchange) *Problem {
	r := x.route
	values := []any{}
	parent, below := r.id.above()
	of, problem := listed(r, x.req.URL.Query().Get("$filter"))
	if problem != nil {
		return problem
	}
	switch {
	case r.list != nil:
		agg := e.aggregates[r.id.rootKey()]
		if agg == nil {
			return missing(r.id)
		}
		for _, c := range objects(properties(agg.body), r.list.collection) {
			values = append(values, agg.render(r.id.withChild(r.list, text(c, "name")), e.index()))
		}
	case below && e.aggregates[parent.key()] == nil:
		return missing(parent)
	case below:
		for _, agg := range e.instancesOf(parent) {
			values = append(values, e.shown(agg, agg.id, ""))
		}
	default:
		for _, agg := range e.sorted() {
			if agg.id.root == r.id.root && sameName(agg.id.subscription, r.id.subscription) &&
				!e.hides(agg) && (r.id.group == "" || sameName(agg.id.group, r.id.group)) && of(agg) {
				values = append(values, e.shown(agg, agg.id, ""))
			}
		}
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	return nil
}

// missing returns the 404 of Resource Manager for a root resource, or of the provider for a child.
func missing(id resourceID) *Problem {
	if _, below := id.above(); below {
		return &Problem{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("Resource %s not found.", id)}
	}
	return notFound("ResourceNotFound", fmt.Sprintf(
		"The Resource '%s/%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		id.typeName(), id.name, id.group))
}

// badInstance rejects a non-numeric instance ID.
func badInstance(id resourceID) *Problem {
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
