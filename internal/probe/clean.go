// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/sleep"
)

// Left is a resource group that a probe has left behind.
type Left struct {
	Name, Location string
	// Created is when its probe began, as its tag says.
	Created string
}

// mostPages bounds the list of groups.
const mostPages = 100

// Find returns the resource groups of a subscription that probes have made: those whose name
// begins as theirs do, and whose tag says so.
func Find(ctx context.Context, azure Azure, subscription string) ([]Left, error) {
	var found []Left
	q := Request{
		Method: methodGet, Path: place{subscription: subscription}.groups(), Version: groupVersion,
		Filter: "tagName eq '" + Tag + "'",
	}
	for range mostPages {
		page, err := patiently(ctx, azure, q)
		if err != nil {
			return nil, fmt.Errorf("list resource groups: %w", err)
		}
		if !page.took() {
			return nil, fmt.Errorf("list resource groups: %s: %s", said(page), page.Message)
		}
		for _, g := range objects(page.Body, "value") {
			if tags := object(g, "tags"); mine(text(g, "name"), tags) {
				found = append(found, Left{text(g, "name"), text(g, "location"), text(tags, "created")})
			}
		}
		next := text(page.Body, "nextLink")
		if next == "" {
			slices.SortFunc(found, func(a, b Left) int { return strings.Compare(a.Name, b.Name) })
			return found, nil
		}
		q = Request{Method: methodGet, Path: q.Path, Version: q.Version, Link: next}
	}
	return nil, fmt.Errorf("list resource groups: more than %d pages", mostPages)
}

// Remove deletes resource groups that probes have made, and waits until they are gone. An
// error joins a *LeftBehind for each that is still there.
func Remove(ctx context.Context, azure Azure, subscription string, list []Left, say func(string)) error {
	var failed error
	for _, l := range list {
		say("deleting resource group " + l.Name + ", which takes some minutes")
		if err := remove(ctx, azure, place{subscription, l.Name}); err != nil {
			failed = errors.Join(failed, &LeftBehind{Group: l.Name, Err: errors.New(Redact(err.Error(), subscription))})
			continue
		}
		say("deleted " + l.Name)
	}
	return failed
}

// remove deletes a group, of which Azure has to say that a probe made it.
func remove(ctx context.Context, azure Azure, at place) error {
	is, err := patiently(ctx, azure, Request{Method: methodGet, Path: at.self(), Version: groupVersion})
	switch {
	case err != nil:
		return err
	case is.gone():
		return nil
	case !is.took():
		return fmt.Errorf("%s: %s", said(is), is.Message)
	case !mine(at.group, object(is.Body, "tags")):
		return fmt.Errorf("its tag %s does not say that a probe made it", Tag)
	}
	gone, err := patiently(ctx, azure, Request{Method: methodDelete, Path: at.self(), Version: groupVersion})
	switch {
	case err != nil:
		return err
	case gone.gone():
		return nil
	case !gone.took():
		return fmt.Errorf("%s: %s", said(gone), gone.Message)
	}
	end, err := azure.Follow(ctx, gone)
	switch {
	case err != nil:
		return fmt.Errorf("its deletion began, and its end is not known: %w", err)
	case end.State != succeeded:
		return fmt.Errorf("its deletion ended %s: %s %s", end.State, strings.Join(end.Codes, " "), end.Message)
	}
	is, err = patiently(ctx, azure, Request{Method: methodGet, Path: at.self(), Version: groupVersion})
	if err == nil && !is.gone() {
		return fmt.Errorf("its deletion ended, and it is still there: %s", said(is))
	}
	return err
}

// A write whose answer is missing arrives within arrivesWithin, if it ever does; it is looked for
// every lookEvery.
const (
	arrivesWithin = time.Minute
	lookEvery     = 5 * time.Second
)

// appears looks for a group whose write may be under way still, and reports whether it was seen.
func appears(ctx context.Context, azure Azure, at place) (bool, error) {
	for until := time.Now().Add(arrivesWithin); ; {
		is, err := patiently(ctx, azure, Request{Method: methodGet, Path: at.self(), Version: groupVersion})
		if err != nil || !is.gone() {
			return err == nil, err
		}
		if time.Now().After(until) {
			return false, nil
		}
		if sleep.For(ctx, lookEvery) != nil {
			return false, context.Cause(ctx)
		}
	}
}

// patiently sends a request until Azure is not busy.
func patiently(ctx context.Context, azure Azure, q Request) (Answer, error) {
	for {
		a, err := azure.Send(ctx, q)
		if err != nil || !busy(a) {
			return a, err
		}
		if sleep.For(ctx, cmp.Or(a.Wait, whenBusy)) != nil {
			return a, context.Cause(ctx)
		}
	}
}

// whenBusy is how long Azure is given that names no time.
const whenBusy = 10 * time.Second

// busy reports whether the same request is worth sending later.
func busy(a Answer) bool {
	return a.Status == statusTooManyRequests ||
		a.Status == statusConflict && slices.Contains(a.Codes, "AnotherOperationInProgress")
}
