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

// Left is a leftover resource group of a probe.
type Left struct {
	Name, Location string
	// Created is the start time of the probe.
	Created string
}

const mostPages = 100

// Find returns the resource groups with a probe's name and tag.
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

// Remove deletes groups and waits for the end. The error joins a *LeftBehind for each that remains.
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

// remove verifies the tag first.
func remove(ctx context.Context, azure Azure, at place) error {
	answer, err := patiently(ctx, azure, Request{Method: methodGet, Path: at.self(), Version: groupVersion})
	switch {
	case err != nil:
		return err
	case answer.gone():
		return nil
	case !answer.took():
		return fmt.Errorf("%s: %s", said(answer), answer.Message)
	case !mine(at.group, object(answer.Body, "tags")):
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
	answer, err = patiently(ctx, azure, Request{Method: methodGet, Path: at.self(), Version: groupVersion})
	if err == nil && !answer.gone() {
		return fmt.Errorf("its deletion ended, and it is still there: %s", said(answer))
	}
	return err
}

// A write without a response takes effect within arrivesWithin, if ever.
const (
	arrivesWithin = time.Minute
	lookEvery     = 5 * time.Second
)

// appears waits for a group with an unconfirmed write.
func appears(ctx context.Context, azure Azure, at place) (bool, error) {
	for until := time.Now().Add(arrivesWithin); ; {
		answer, err := patiently(ctx, azure, Request{Method: methodGet, Path: at.self(), Version: groupVersion})
		if err != nil || !answer.gone() {
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

// whenBusy is the delay without a Retry-After.
const whenBusy = 10 * time.Second

func busy(a Answer) bool {
	return a.Status == statusTooManyRequests ||
		a.Status == statusConflict && slices.Contains(a.Codes, "AnotherOperationInProgress")
}
