// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

type snapshotEntry struct {
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
}

func (e *Emulator) sortedAggregates() []*aggregate {
	out := make([]*aggregate, 0, len(e.aggregates))
	for _, key := range slices.Sorted(maps.Keys(e.aggregates)) {
		out = append(out, e.aggregates[key])
	}
	return out
}

// Put creates or replaces a resource at once, without validation. Read-only state is taken from the
// body; omitted addresses are allocated. A running operation is canceled.
func (e *Emulator) Put(id string, body []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	e.revision++
	if err := e.installResource(id, body, false); err != nil {
		return err
	}
	if parsed, err := parseID(id); err == nil {
		e.allocateMissing(e.aggregates[parsed.rootKey()])
	}
	return nil
}

func (e *Emulator) installResource(id string, raw []byte, keepEtag bool) error {
	if r := parseRoute(http.MethodGet, &url.URL{Path: id}); r.target == targetGroup {
		return e.installGroup(r, raw)
	}
	parsed, err := parseID(id)
	if err != nil {
		return err
	}
	body, err := parseBody(raw)
	if err == nil {
		err = checkShape(parsed, body)
	}
	if err != nil {
		return fmt.Errorf("resource %s: %w", id, err)
	}
	agg := e.aggregates[parsed.rootKey()]
	if parent, below := parsed.parentID(); agg == nil && below && e.aggregates[parent.key()] == nil {
		return fmt.Errorf("resource %s: its parent %s does not exist: put that first", id, parent)
	}
	if agg == nil {
		agg = &aggregate{id: parsed.rootID()}
		e.aggregates[parsed.rootKey()] = agg
		e.ensureGroup(parsed)
	}
	if agg.op != nil {
		e.cancelRunning(agg, &operation{name: operationName(parsed, KindPut), id: e.newGUID(), target: parsed}, time.Now())
		agg.op = nil
	}
	e.markOverwritten(parsed)
	etag, guid := stringField(body, "etag"), stringField(propertyFields(body), "resourceGuid")
	before := agg.body
	e.installModel(agg, body)
	agg.body = withOrigins(before, e.installedBody(parsed, before, body), "")
	e.updateReferences(parsed, before, agg.body)
	e.updateDataPlane(parsed, time.Now())
	agg.state, agg.lastWritten = stateSucceeded, parsed.rootID()
	if parsed.child == nil && parsed.root.guid {
		agg.guid = guid
		if guid == "" {
			agg.guid = e.newGUID()
		}
	}
	switch {
	case parsed.child == nil && keepEtag && etag != "":
		agg.etag = etag
	case parsed.child == nil || !keepEtag:
		e.renewEtag(agg)
	}
	return nil
}

func (e *Emulator) installedBody(id resourceID, root, body fields) fields {
	clean := e.stripReadOnly(id, body)
	if id.child != nil {
		return withChildBody(root, id, retainProperties(id.child, body, clean))
	}
	return retainServerState(id.root, body, clean)
}

// Get returns the resource as a GET shows it, not logged and not throttled.
func (e *Emulator) Get(id string) (json.RawMessage, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	if r := parseRoute(http.MethodGet, &url.URL{Path: id}); r.target == targetGroup {
		if g := e.findGroup(r.id); g != nil {
			return encodeJSON(g.renderGroup()), true
		}
		return nil, false
	}
	parsed, err := parseID(id)
	if err != nil {
		return nil, false
	}
	agg := e.aggregates[parsed.rootKey()]
	if agg == nil || !agg.hasResource(parsed) {
		return nil, false
	}
	return encodeJSON(e.renderExpanded(agg, parsed, "")), true
}

// Snapshot returns all resources as a JSON array of {"id", "body"}, without running operations.
func (e *Emulator) Snapshot() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	groups := e.snapshotGroups()
	for _, agg := range e.sortedAggregates() {
		groups = append(groups, snapshotEntry{ID: agg.id.String(), Body: encodeJSON(e.snapshotBody(agg))})
	}
	return encodeJSON(groups)
}

// Revision returns a number that grows whenever Get or Snapshot may return something else.
func (e *Emulator) Revision() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	return e.revision
}

// Restore replaces all resources and drops all operations. Resources become Succeeded. Children may
// be listed separately. An invalid snapshot changes nothing.
func (e *Emulator) Restore(snapshot []byte) error {
	var entries []snapshotEntry
	if err := json.Unmarshal(snapshot, &entries); err != nil {
		return fmt.Errorf(`snapshot: want a JSON array of {"id", "body"}: %w`, err)
	}
	slices.SortStableFunc(entries, func(a, b snapshotEntry) int { return strings.Count(a.ID, "/") - strings.Count(b.ID, "/") })
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh := New(e.opts)
	fresh.restoring = true
	fresh.random, fresh.lastPublicIP = e.random, e.lastPublicIP
	var errs []error
	for _, r := range entries {
		errs = append(errs, fresh.installResource(r.ID, r.Body, true))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	fresh.dropSeededNICs()
	for _, agg := range fresh.sortedAggregates() {
		fresh.allocateMissing(agg)
	}
	e.revision++
	e.aggregates, e.operations, e.opOrder, e.running = fresh.aggregates, fresh.operations, nil, nil
	e.groups, e.deletions = fresh.groups, fresh.deletions
	e.links, e.lastPublicIP = nil, fresh.lastPublicIP
	_ = e.references() // baseline for later changes
	if e.flows != nil {
		e.flows.replaceRules("/", e.allFlowRules(), time.Now())
	}
	return nil
}
