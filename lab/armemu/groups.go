// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

type resourceGroup struct {
	subscription, name string
	// nil for a group implied by a resource in it
	body     fields
	deletion *groupDeletion // running, or nil
}

type groupDeletion struct {
	id       string
	deadline time.Time
	done     bool
}

// emptyGroupSeconds is the time to delete an empty group, in seconds. Each resource type in it adds the
// time of one DELETE: dependent types are deleted first.
const emptyGroupSeconds = 5

// groupPollInterval applies at latency scale 1.
const groupPollInterval = 15 * time.Second

func groupKey(subscription, name string) string {
	return strings.ToLower(subscription + "/" + name)
}

func (g *resourceGroup) armID() string {
	return "/subscriptions/" + g.subscription + "/resourceGroups/" + g.name
}

func (e *Emulator) findGroup(id resourceID) *resourceGroup {
	return e.groups[groupKey(id.subscription, id.group)]
}

func (e *Emulator) ensureGroup(id resourceID) {
	if key := groupKey(id.subscription, id.group); e.groups[key] == nil {
		e.groups[key] = &resourceGroup{subscription: id.subscription, name: id.group}
	}
}

func (e *Emulator) checkGroup(r route) *Problem {
	if r.id.group == "" {
		return nil
	}
	g := e.findGroup(r.id)
	switch {
	case g == nil && e.opts.StrictResourceGroups:
		return groupMissing(r.id.group)
	case g != nil && (r.kind == KindPut || r.kind == KindPatch):
		return g.rejectDeleting()
	}
	return nil
}

func (g *resourceGroup) rejectDeleting() *Problem {
	if g.deletion == nil {
		return nil
	}
	return &Problem{
		Status: http.StatusConflict, Code: "ResourceGroupBeingDeleted", Gateway: true,
		Message: fmt.Sprintf("The resource group '%s' is in deprovisioning state and cannot perform this operation.", g.name),
	}
}

func groupMissing(name string) *Problem {
	return notFound("ResourceGroupNotFound", fmt.Sprintf("Resource group '%s' could not be found.", name))
}

func (e *Emulator) resourcesInGroup(g *resourceGroup) []*aggregate {
	return slices.DeleteFunc(e.sortedAggregates(), func(a *aggregate) bool {
		return groupKey(a.id.subscription, a.id.group) != groupKey(g.subscription, g.name)
	})
}

func (g *resourceGroup) renderGroup() fields {
	out := withField(g.body, "id", g.armID())
	out["name"], out["type"] = g.name, resourcesNamespace+"/resourceGroups"
	out["location"] = cmp.Or(stringField(g.body, "location"), "eastus")
	out["properties"] = fields{"provisioningState": stateSucceeded}
	if g.deletion != nil {
		out["properties"] = fields{"provisioningState": stateDeleting}
	}
	return out
}

func parseGroupBody(raw []byte) (fields, error) {
	body, err := parseBody(raw)
	if err == nil {
		err = requireString(body, "location", "resourceGroups")
	}
	if err != nil {
		return nil, err
	}
	body = withoutFields(body, "id", "name", "type", "properties")
	if at := stringField(body, "location"); at != "" {
		body["location"] = strings.ToLower(strings.ReplaceAll(at, " ", ""))
	}
	return body, nil
}

func (e *Emulator) installGroup(r route, raw []byte) error {
	body, err := parseGroupBody(raw)
	if err != nil {
		return fmt.Errorf("resource group %s: %w", r.id.group, err)
	}
	e.ensureGroup(r.id)
	e.findGroup(r.id).body = body
	return nil
}

// startDeletion leaves the resources in place until the deletion ends (assumed).
func (e *Emulator) startDeletion(g *resourceGroup, now time.Time) {
	seconds := float64(emptyGroupSeconds)
	seen := map[*rootKind]bool{}
	for _, agg := range e.resourcesInGroup(g) {
		if !seen[agg.id.root] && agg.id.root.parent == nil {
			seen[agg.id.root] = true
			seconds += agg.id.root.delete.median
		}
	}
	g.deletion = &groupDeletion{id: e.newGUID(), deadline: now.Add(e.sampleLatency(latencyRange{median: seconds}))}
	e.deletions[g.deletion.id] = g.deletion
}

func (e *Emulator) finishGroupDeletions(now time.Time) {
	due := slices.DeleteFunc(slices.Collect(maps.Values(e.groups)), func(g *resourceGroup) bool {
		return g.deletion == nil || now.Before(g.deletion.deadline)
	})
	slices.SortFunc(due, func(a, b *resourceGroup) int {
		return cmp.Or(a.deletion.deadline.Compare(b.deletion.deadline), cmp.Compare(a.armID(), b.armID()))
	})
	for _, g := range due {
		if g.deletion.done {
			continue // finished with another that was due at the same time
		}
		g.deletion.done = true
		e.revision++
		delete(e.groups, groupKey(g.subscription, g.name))
		e.finishDue(g.deletion.deadline)
		e.deleteGroupResources(g, g.deletion.deadline)
	}
}

func (e *Emulator) deleteGroupResources(g *resourceGroup, at time.Time) {
	resources := e.resourcesInGroup(g)
	for _, agg := range resources {
		e.endOperation(agg, "the resource group is deleted")
		delete(e.aggregates, agg.id.key())
	}
	for _, agg := range resources {
		e.updateReferences(agg.id, agg.body, nil)
		e.updateDataPlane(agg.id, at)
	}
}

// endOperation: a DELETE succeeds, other operations are canceled.
func (e *Emulator) endOperation(agg *aggregate, reason string) {
	run := agg.op
	if run == nil {
		return
	}
	run.status = opSucceeded
	if !run.remove {
		run.status, run.problem = opCanceled, &Problem{Code: "Canceled", Message: "Operation was canceled: " + reason + "."}
	}
	e.removeRunning(run)
}

func (e *Emulator) snapshotGroups() []snapshotEntry {
	entries := []snapshotEntry{}
	for _, key := range slices.Sorted(maps.Keys(e.groups)) {
		if g := e.groups[key]; g.body != nil {
			entries = append(entries, snapshotEntry{ID: g.armID(), Body: encodeJSON(g.renderGroup())})
		}
	}
	return entries
}
