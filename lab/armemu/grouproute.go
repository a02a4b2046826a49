// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Resource groups are served by Resource Manager itself, not by a resource provider.

type routeTarget int

const (
	targetResource routeTarget = iota // a resource of a provider
	targetGroup
	targetGroups
	targetGroupResources
	targetGroupResult // the deletion of a group, polled by Location
	targetLocations   // the regions of a subscription
)

const resourcesNamespace = "Microsoft.Resources"

var resourcesVersions = []string{
	"2019-10-01", "2020-06-01", "2020-10-01", "2021-01-01", "2021-04-01", "2022-09-01", "2022-12-01", "2023-07-01",
	"2024-03-01", "2024-07-01", "2024-11-01", "2025-03-01", "2025-04-01",
}

// parseGroupPath reports whether Resource Manager itself serves the path.
func (r *route) parseGroupPath(method string, seg []string) bool {
	inGroups := len(seg) > 0 && sameName(seg[0], "resourceGroups")
	switch {
	case inGroups && len(seg) == 1:
		r.target = targetGroups
		r.setKind(method, KindList)
	case inGroups && len(seg) == 2:
		r.target, r.id.group = targetGroup, seg[1]
		if method == http.MethodHead {
			method = http.MethodGet
		}
		r.setKind(method, KindGet, KindPut, KindDelete)
	case inGroups && len(seg) == 3 && sameName(seg[2], "resources"):
		r.target, r.id.group = targetGroupResources, seg[1]
		r.setKind(method, KindList)
	case len(seg) == 2 && sameName(seg[0], "operationresults"):
		r.target, r.operation, r.result = targetGroupResult, strings.ToLower(seg[1]), true
		r.setKind(method, KindPoll)
	case len(seg) == 1 && sameName(seg[0], locationsSegment):
		r.target = targetLocations
		r.setKind(method, KindList)
	default:
		return false
	}
	r.namespace = resourcesNamespace
	return true
}

func (r route) groupID() string {
	id := "/subscriptions/" + r.subscription
	if r.id.group != "" {
		id += "/resourceGroups/" + r.id.group
	}
	return id
}

func (r route) groupPermission() permission {
	const groups = resourcesNamespace + "/subscriptions/resourceGroups"
	action := groups + "/read"
	switch {
	case r.target == targetLocations:
		return permission{resourcesNamespace + "/subscriptions/locations/read", "/subscriptions/" + r.subscription}
	case r.target == targetGroupResult:
		action = resourcesNamespace + "/subscriptions/operationresults/read"
	case r.target == targetGroupResources:
		action = groups + "/resources/read"
	case r.kind == KindPut:
		action = groups + "/write"
	case r.kind == KindDelete:
		action = groups + "/delete"
	}
	return permission{action, r.groupID()}
}

func (e *Emulator) serveGroup(x *exchange) *Problem {
	x.done = true
	r := x.route
	g := e.findGroup(r.id)
	switch {
	case r.target == targetLocations:
		return e.serveLocations(x)
	case r.target == targetGroups:
		return e.listGroups(x)
	case r.target == targetGroupResult:
		return e.pollGroup(x)
	case r.kind == KindPut:
		return e.putGroup(x, g)
	case g == nil:
		return groupMissing(r.id.group)
	case r.target == targetGroupResources:
		return e.listGroupResources(x, g)
	case r.kind == KindDelete:
		e.deleteGroup(x, g)
		return nil
	}
	x.status, x.body = http.StatusOK, g.renderGroup()
	if x.req.Method == http.MethodHead {
		x.status, x.body = http.StatusNoContent, nil
	}
	return nil
}

func (e *Emulator) putGroup(x *exchange, g *resourceGroup) *Problem {
	body, err := parseGroupBody(x.payload)
	if err != nil {
		return badRequest("InvalidRequestContent", "The request content was invalid and could not be deserialized: '"+err.Error()+"'.")
	}
	at := stringField(body, "location")
	if at == "" {
		return badRequest("LocationRequired", "The location property is required for this definition.")
	}
	x.status = http.StatusOK
	if g == nil {
		e.ensureGroup(x.route.id)
		g, x.status = e.findGroup(x.route.id), http.StatusCreated
	}
	if problem := g.rejectDeleting(); problem != nil {
		return problem
	}
	if before := stringField(g.body, "location"); before != "" && before != at {
		return &Problem{
			Status: http.StatusConflict, Code: "InvalidResourceGroupLocation", Gateway: true,
			Message: fmt.Sprintf("Invalid resource group location '%s'. The Resource group already exists in location '%s'.", at, before),
		}
	}
	g.body = body
	x.body = g.renderGroup()
	return nil
}

func (e *Emulator) deleteGroup(x *exchange, g *resourceGroup) {
	if g.deletion == nil {
		e.startDeletion(g, x.now)
	}
	x.status, x.call.Operation = http.StatusAccepted, g.deletion.id
	e.setGroupPoll(x, g.deletion)
}

func (e *Emulator) setGroupPoll(x *exchange, d *groupDeletion) {
	where := &url.URL{
		Path:     "/subscriptions/" + x.route.subscription + "/operationresults/" + d.id,
		RawQuery: url.Values{"api-version": {x.req.URL.Query().Get("api-version")}}.Encode(),
	}
	x.header.Set("Location", absoluteURL(x, where))
	x.header.Set("Retry-After", wholeSeconds(time.Duration(float64(groupPollInterval)*e.opts.LatencyScale)))
}

func (e *Emulator) pollGroup(x *exchange) *Problem {
	d := e.deletions[x.route.operation]
	if d == nil {
		return notFound("NotFound", fmt.Sprintf("The operation %q is not known.", x.route.operation))
	}
	x.call.Operation, x.status = d.id, http.StatusOK
	if !d.done {
		x.status = http.StatusAccepted
		e.setGroupPoll(x, d)
	}
	return nil
}

var tagFilter = regexp.MustCompile(`^\s*tagName\s+eq\s+'([^']*)'(?:\s+and\s+tagValue\s+eq\s+'([^']*)')?\s*$`)

func (e *Emulator) listGroups(x *exchange) *Problem {
	filter := x.req.URL.Query().Get("$filter")
	want := tagFilter.FindStringSubmatch(filter)
	if filter != "" && want == nil {
		return badRequest("InvalidFilterInQueryString", "The emulator models the filters tagName eq '…' and tagName eq '…' and tagValue eq '…' only, not "+filter+".")
	}
	values := []any{}
	for _, key := range slices.Sorted(maps.Keys(e.groups)) {
		g := e.groups[key]
		if sameName(g.subscription, x.route.subscription) && (want == nil || g.hasTag(want[1], want[2])) {
			values = append(values, g.renderGroup())
		}
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	return nil
}

// hasTag: an empty value matches any. Names are case-insensitive.
func (g *resourceGroup) hasTag(name, value string) bool {
	for key, v := range objectField(g.body, "tags") {
		if sameName(key, name) && (value == "" || v == value) {
			return true
		}
	}
	return false
}

func (e *Emulator) listGroupResources(x *exchange, g *resourceGroup) *Problem {
	if x.req.URL.Query().Get("$filter") != "" {
		return badRequest("InvalidFilterInQueryString", "The emulator models no $filter on the resources of a group.")
	}
	values := []any{}
	for _, agg := range e.resourcesInGroup(g) {
		if agg.id.root.parent != nil {
			continue
		}
		out := fields{"id": agg.id.String(), "name": agg.id.name, "type": agg.id.typeName()}
		for _, key := range []string{"location", "sku", "tags", "zones"} {
			if v, ok := agg.body[key]; ok {
				out[key] = v
			}
		}
		values = append(values, out)
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	return nil
}
