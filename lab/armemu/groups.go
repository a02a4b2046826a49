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

// A resourceGroup is one that somebody has made, or that holds what somebody has put.
type resourceGroup struct {
	subscription, name string
	// body is what a PUT or a seed said; nil if the group is there for what is in it.
	body     fields
	deletion *groupDeletion // running, or nil
}

// A groupDeletion is a DELETE of a group that was accepted.
type groupDeletion struct {
	id       string
	deadline time.Time
	done     bool
}

// groupSelf is the deletion of an empty group, in seconds. Each type that is in it takes as
// long as a DELETE of one: Resource Manager waits for those that depend on others.
const groupSelf = 5

// groupPollEvery is what a DELETE of a group asks of pollers at latency scale 1.
const groupPollEvery = 15 * time.Second

func groupKey(subscription, name string) string {
	return strings.ToLower(subscription + "/" + name)
}

func (g *resourceGroup) id() string {
	return "/subscriptions/" + g.subscription + "/resourceGroups/" + g.name
}

func (e *Emulator) group(id resourceID) *resourceGroup {
	return e.groups[groupKey(id.subscription, id.group)]
}

// imply has a resource's group be there.
func (e *Emulator) imply(id resourceID) {
	if key := groupKey(id.subscription, id.group); e.groups[key] == nil {
		e.groups[key] = &resourceGroup{subscription: id.subscription, name: id.group}
	}
}

// refuseGroup is what a request for a group's resource meets if the group is not there or
// about to go.
func (e *Emulator) refuseGroup(r route) *Problem {
	if r.id.group == "" {
		return nil
	}
	g := e.group(r.id)
	switch {
	case g == nil && e.opts.StrictResourceGroups:
		return groupMissing(r.id.group)
	case g != nil && (r.kind == KindPut || r.kind == KindPatch):
		return g.refuseGoing()
	}
	return nil
}

// refuseGoing is what a write meets in a group that is being deleted.
func (g *resourceGroup) refuseGoing() *Problem {
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

// within are the resources of a group, in the order of their ids.
func (e *Emulator) within(g *resourceGroup) []*aggregate {
	return slices.DeleteFunc(e.sorted(), func(a *aggregate) bool {
		return groupKey(a.id.subscription, a.id.group) != groupKey(g.subscription, g.name)
	})
}

// render returns the group as an answer shows it.
func (g *resourceGroup) render() fields {
	out := with(g.body, "id", g.id())
	out["name"], out["type"] = g.name, resources+"/resourceGroups"
	out["location"] = cmp.Or(text(g.body, "location"), "eastus")
	out["properties"] = fields{"provisioningState": stateSucceeded}
	if g.deletion != nil {
		out["properties"] = fields{"provisioningState": stateDeleting}
	}
	return out
}

// readGroupBody is what a PUT or a seed of a group says.
func readGroupBody(raw []byte) (fields, error) {
	body, err := parseBody(raw)
	if err == nil {
		err = wantText(body, "location", "resourceGroups")
	}
	if err != nil {
		return nil, err
	}
	body = without(body, "id", "name", "type", "properties")
	if at := text(body, "location"); at != "" {
		body["location"] = strings.ToLower(strings.ReplaceAll(at, " ", ""))
	}
	return body, nil
}

// installGroup has a group be there as a seed says.
func (e *Emulator) installGroup(r route, raw []byte) error {
	body, err := readGroupBody(raw)
	if err != nil {
		return fmt.Errorf("resource group %s: %w", r.id.group, err)
	}
	e.imply(r.id)
	e.group(r.id).body = body
	return nil
}

// startDeletion accepts a DELETE of a group. What is in it stays until it is done (assumed).
func (e *Emulator) startDeletion(g *resourceGroup, now time.Time) {
	seconds := float64(groupSelf)
	seen := map[*rootKind]bool{}
	for _, agg := range e.within(g) {
		if !seen[agg.id.root] && agg.id.root.parent == nil {
			seen[agg.id.root] = true
			seconds += agg.id.root.delete.median
		}
	}
	g.deletion = &groupDeletion{id: e.guid(), deadline: now.Add(e.latency(spread{median: seconds}))}
	e.deletions[g.deletion.id] = g.deletion
}

// settleGroups finishes the deletions that have come due, each after what was done before.
func (e *Emulator) settleGroups(now time.Time) {
	due := slices.DeleteFunc(slices.Collect(maps.Values(e.groups)), func(g *resourceGroup) bool {
		return g.deletion == nil || now.Before(g.deletion.deadline)
	})
	slices.SortFunc(due, func(a, b *resourceGroup) int {
		return cmp.Or(a.deletion.deadline.Compare(b.deletion.deadline), cmp.Compare(a.id(), b.id()))
	})
	for _, g := range due {
		if g.deletion.done {
			continue // settled with one that was due at the same time
		}
		g.deletion.done = true
		delete(e.groups, groupKey(g.subscription, g.name))
		e.settle(g.deletion.deadline)
		e.empty(g, g.deletion.deadline)
	}
}

// empty removes all that a group holds. What runs there ends with it.
func (e *Emulator) empty(g *resourceGroup, at time.Time) {
	all := e.within(g)
	for _, agg := range all {
		e.endRunning(agg, "the resource group is deleted")
		delete(e.aggregates, agg.id.key())
	}
	for _, agg := range all {
		e.changed(agg.id, agg.body, nil)
		e.programmed(agg.id, at)
	}
}

// endRunning ends what runs on a resource that is gone: a DELETE has done its work.
func (e *Emulator) endRunning(agg *aggregate, why string) {
	run := agg.op
	if run == nil {
		return
	}
	run.status = opSucceeded
	if !run.remove {
		run.status, run.problem = opCanceled, &Problem{Code: "Canceled", Message: "Operation was canceled: " + why + "."}
	}
	e.forgetRunning(run)
}

// storedGroups are the groups that somebody made, for a snapshot.
func (e *Emulator) storedGroups() []stored {
	all := []stored{}
	for _, key := range slices.Sorted(maps.Keys(e.groups)) {
		if g := e.groups[key]; g.body != nil {
			all = append(all, stored{ID: g.id(), Body: encode(g.render())})
		}
	}
	return all
}
