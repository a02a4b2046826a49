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

	"weir.dev/weir/internal/ratelimit"
)

// OrphanGroup is a leftover resource group of a probe.
type OrphanGroup struct {
	Name, Location string
	// Created is the start time of the probe.
	Created string
}

const maxPages = 100

// FindGroups returns the resource groups with a probe's name and tag.
func FindGroups(ctx context.Context, azure Azure, subscription string) ([]OrphanGroup, error) {
	var found []OrphanGroup
	q := Request{
		Method: methodGet, Path: place{subscription: subscription}.groupsPath(), Version: groupVersion,
		Filter: "tagName eq '" + Tag + "'",
	}
	for range maxPages {
		page, err := sendWithRetry(ctx, azure, q)
		if err != nil {
			return nil, fmt.Errorf("list resource groups: %w", err)
		}
		if !page.IsAccepted() {
			return nil, fmt.Errorf("list resource groups: %s: %s", formatResponse(page), page.Message)
		}
		for _, g := range objectList(page.Body, "value") {
			if tags := childObject(g, "tags"); isProbeGroup(stringValue(g, "name"), tags) {
				found = append(found, OrphanGroup{stringValue(g, "name"), stringValue(g, "location"), stringValue(tags, "created")})
			}
		}
		next := stringValue(page.Body, "nextLink")
		if next == "" {
			slices.SortFunc(found, func(a, b OrphanGroup) int { return strings.Compare(a.Name, b.Name) })
			return found, nil
		}
		q = Request{Method: methodGet, Path: q.Path, Version: q.Version, Link: next}
	}
	return nil, fmt.Errorf("list resource groups: more than %d pages", maxPages)
}

// RemoveGroups deletes groups and waits for the end. The error joins a *OrphanError for each that remains.
func RemoveGroups(ctx context.Context, azure Azure, subscription string, list []OrphanGroup, print func(string)) error {
	var failed error
	for _, l := range list {
		print("deleting resource group " + l.Name + ", which takes some minutes")
		if err := removeGroup(ctx, azure, place{subscription, l.Name}); err != nil {
			failed = errors.Join(failed, &OrphanError{Group: l.Name, Err: errors.New(Redact(err.Error(), subscription))})
			continue
		}
		print("deleted " + l.Name)
	}
	return failed
}

// removeGroup verifies the tag first.
func removeGroup(ctx context.Context, azure Azure, at place) error {
	answer, err := sendWithRetry(ctx, azure, Request{Method: methodGet, Path: at.groupPath(), Version: groupVersion})
	switch {
	case err != nil:
		return err
	case isGroupMissing(answer):
		return nil
	case !answer.IsAccepted():
		return fmt.Errorf("%s: %s", formatResponse(answer), answer.Message)
	case !isProbeGroup(at.group, childObject(answer.Body, "tags")):
		return fmt.Errorf("its tag %s does not say that a probe made it", Tag)
	}
	gone, err := sendWithRetry(ctx, azure, Request{Method: methodDelete, Path: at.groupPath(), Version: groupVersion})
	switch {
	case err != nil:
		return err
	case isGroupMissing(gone):
		return nil
	case !gone.IsAccepted():
		return fmt.Errorf("%s: %s", formatResponse(gone), gone.Message)
	}
	end, err := azure.Follow(ctx, gone)
	switch {
	case err != nil:
		return fmt.Errorf("its deletion began, and its end is not known: %w", err)
	case end.State != succeeded:
		return fmt.Errorf("its deletion ended %s: %s %s", end.State, strings.Join(end.Codes, " "), end.Message)
	}
	answer, err = sendWithRetry(ctx, azure, Request{Method: methodGet, Path: at.groupPath(), Version: groupVersion})
	if err == nil && !isGroupMissing(answer) {
		return fmt.Errorf("its deletion ended, and it is still there: %s", formatResponse(answer))
	}
	return err
}

// A write without a response takes effect within createTimeout, if ever.
const (
	createTimeout = time.Minute
	readInterval  = 5 * time.Second
)

// waitForGroup waits for a group with an unconfirmed write.
func waitForGroup(ctx context.Context, azure Azure, at place) (bool, error) {
	for until := time.Now().Add(createTimeout); ; {
		answer, err := sendWithRetry(ctx, azure, Request{Method: methodGet, Path: at.groupPath(), Version: groupVersion})
		if err != nil || !isGroupMissing(answer) {
			return err == nil, err
		}
		if time.Now().After(until) {
			return false, nil
		}
		if ratelimit.Sleep(ctx, readInterval) != nil {
			return false, context.Cause(ctx)
		}
	}
}

func sendWithRetry(ctx context.Context, azure Azure, q Request) (Response, error) {
	for {
		a, err := azure.Send(ctx, q)
		if err != nil || !isBusy(a) {
			return a, err
		}
		if ratelimit.Sleep(ctx, cmp.Or(a.Wait, busyDelay)) != nil {
			return a, context.Cause(ctx)
		}
	}
}

// busyDelay is the delay without a Retry-After.
const busyDelay = 10 * time.Second

func isBusy(a Response) bool {
	return a.Status == statusTooManyRequests ||
		a.Status == statusConflict && slices.Contains(a.Codes, "AnotherOperationInProgress")
}
