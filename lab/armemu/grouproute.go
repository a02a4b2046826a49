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

// about is the kind of target of a path.
type about int

const (
	aResource     about = iota // a resource of a provider
	aGroup                     // a resource group
	allGroups                  // the groups of a subscription
	groupContents              // the resources of a group
	groupResult                // the deletion of a group, polled by Location
)

// resources is the namespace of Resource Manager itself.
const resources = "Microsoft.Resources"

// resourcesVersions are api-versions of Microsoft.Resources with the same behavior.
var resourcesVersions = []string{
	"2019-10-01", "2020-06-01", "2020-10-01", "2021-01-01", "2021-04-01", "2022-09-01", "2023-07-01",
	"2024-03-01", "2024-07-01", "2024-11-01", "2025-03-01", "2025-04-01",
}

// readGroup parses the path after the subscription and reports whether Resource Manager itself
// serves it.
func (r *route) readGroup(method string, seg []string) bool {
	inGroups := len(seg) > 0 && sameName(seg[0], "resourceGroups")
	switch {
	case inGroups && len(seg) == 1:
		r.about = allGroups
		r.byMethod(method, KindList)
	case inGroups && len(seg) == 2:
		r.about, r.id.group = aGroup, seg[1]
		if method == http.MethodHead {
			method = http.MethodGet
		}
		r.byMethod(method, KindGet, KindPut, KindDelete)
	case inGroups && len(seg) == 3 && sameName(seg[2], "resources"):
		r.about, r.id.group = groupContents, seg[1]
		r.byMethod(method, KindList)
	case len(seg) == 2 && sameName(seg[0], "operationresults"):
		r.about, r.operation, r.result = groupResult, strings.ToLower(seg[1]), true
		r.byMethod(method, KindPoll)
	default:
		return false
	}
	r.namespace = resources
	return true
}

// groupID returns the ID of the group or subscription in the path.
func (r route) groupID() string {
	id := "/subscriptions/" + r.subscription
	if r.id.group != "" {
		id += "/resourceGroups/" + r.id.group
	}
	return id
}

// asksGroup returns the permission that the request requires.
func (r route) asksGroup() asked {
	const groups = resources + "/subscriptions/resourceGroups"
	action := groups + "/read"
	switch {
	case r.about == groupResult:
		action = resources + "/subscriptions/operationresults/read"
	case r.about == groupContents:
		action = groups + "/resources/read"
	case r.kind == KindPut:
		action = groups + "/write"
	case r.kind == KindDelete:
		action = groups + "/delete"
	}
	return asked{action, r.groupID()}
}

// answerGroup serves a path of Resource Manager itself.
func (e *Emulator) answerGroup(x *exchange) *Problem {
	x.done = true
	r := x.route
	g := e.group(r.id)
	switch {
	case r.about == allGroups:
		return e.listGroups(x)
	case r.about == groupResult:
		return e.pollGroup(x)
	case r.kind == KindPut:
		return e.putGroup(x, g)
	case g == nil:
		return groupMissing(r.id.group)
	case r.about == groupContents:
		return e.listContents(x, g)
	case r.kind == KindDelete:
		e.deleteGroup(x, g)
		return nil
	}
	x.status, x.body = http.StatusOK, g.render()
	if x.req.Method == http.MethodHead {
		x.status, x.body = http.StatusNoContent, nil
	}
	return nil
}

func (e *Emulator) putGroup(x *exchange, g *resourceGroup) *Problem {
	body, err := readGroupBody(x.payload)
	if err != nil {
		return bad("InvalidRequestContent", "The request content was invalid and could not be deserialized: '"+err.Error()+"'.")
	}
	at := text(body, "location")
	if at == "" {
		return bad("LocationRequired", "The location property is required for this definition.")
	}
	x.status = http.StatusOK
	if g == nil {
		e.imply(x.route.id)
		g, x.status = e.group(x.route.id), http.StatusCreated
	}
	if problem := g.refuseGoing(); problem != nil {
		return problem
	}
	if was := text(g.body, "location"); was != "" && was != at {
		return &Problem{
			Status: http.StatusConflict, Code: "InvalidResourceGroupLocation", Gateway: true,
			Message: fmt.Sprintf("Invalid resource group location '%s'. The Resource group already exists in location '%s'.", at, was),
		}
	}
	g.body = body
	x.body = g.render()
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
	x.header.Set("Location", absolute(x, where))
	x.header.Set("Retry-After", wholeSeconds(time.Duration(float64(groupPollEvery)*e.opts.LatencyScale)))
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

// byTag is the only supported filter of groups.
var byTag = regexp.MustCompile(`^\s*tagName\s+eq\s+'([^']*)'(?:\s+and\s+tagValue\s+eq\s+'([^']*)')?\s*$`)

func (e *Emulator) listGroups(x *exchange) *Problem {
	filter := x.req.URL.Query().Get("$filter")
	want := byTag.FindStringSubmatch(filter)
	if filter != "" && want == nil {
		return bad("InvalidFilterInQueryString", "The emulator models the filters tagName eq '…' and tagName eq '…' and tagValue eq '…' only, not "+filter+".")
	}
	values := []any{}
	for _, key := range slices.Sorted(maps.Keys(e.groups)) {
		g := e.groups[key]
		if sameName(g.subscription, x.route.subscription) && (want == nil || g.tagged(want[1], want[2])) {
			values = append(values, g.render())
		}
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	return nil
}

// tagged reports whether the group has the tag; an empty value matches any. Names are
// case-insensitive.
func (g *resourceGroup) tagged(name, value string) bool {
	for key, v := range object(g.body, "tags") {
		if sameName(key, name) && (value == "" || v == value) {
			return true
		}
	}
	return false
}

func (e *Emulator) listContents(x *exchange, g *resourceGroup) *Problem {
	if x.req.URL.Query().Get("$filter") != "" {
		return bad("InvalidFilterInQueryString", "The emulator models no $filter on the resources of a group.")
	}
	values := []any{}
	for _, agg := range e.within(g) {
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
