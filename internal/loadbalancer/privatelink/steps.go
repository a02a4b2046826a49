// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
)

// CodeUpdating is the fault code while Azure is busy.
const CodeUpdating = "PrivateLinkServiceBusy"

// CodeFrontendInUse is the fault code of a published frontend to be deleted.
const CodeFrontendInUse = "FrontendIsPublished"

// frontendWork is not safe for concurrent use.
type frontendWork struct {
	*round
	frontend
	services []desired.FrontendService
	// removeAll is true if no Private Link Service may remain.
	removeAll bool
	links     []lb.PrivateLinkService
	decision  desired.Decision

	// lastStep writes nothing; done are the steps before it. hasConflict is true if a difference is
	// left because of a conflict.
	lastStep     desired.Step
	steps        []desired.Step
	hasConflict  bool
	removedCount int
	hasMore      bool
	err          error
}

func (w *frontendWork) decide() {
	if !w.removeAll {
		w.decision = desired.ResolveOwner(w.Frontend, w.Settings, w.services, w.links)
	}
}

func (w *frontendWork) runSteps(ctx context.Context, valid func() bool) error {
	checked := false
	for done := map[string]bool{}; ; {
		step, err := w.nextStep(ctx)
		if err != nil {
			return err
		}
		if !checked && (step.Action == desired.ActionUpdate || step.Action == desired.ActionInSync) {
			checked = true
			if w.hasConflict = w.leaveConflict(step); w.hasConflict {
				step.Action = desired.ActionInSync
				step.Service = w.findLink(step.Service.ID)
			}
		}
		if step.Action == desired.ActionCreate && w.ownerRequest() < 0 { // its resource group may not be recorded yet
			step = desired.Step{Action: desired.ActionInSync}
		}
		w.lastStep = step
		if !step.IsWrite() {
			return w.stepError(step)
		}
		key := strings.Join([]string{string(step.Action), step.Service.ID.Key(), step.Connection.Name, step.Subnet.Name}, "/")
		switch {
		case done[key]:
			w.Conflicts.RecordMismatch(conflict.PrivateLinks, w.decision.Owner, time.Now())
			return &armerror.Fault{Class: armerror.Retriable, Code: armerror.CodeOutcomeUnknown, Reason: "outcome_unknown",
				Err: fmt.Errorf("private link service %s: Azure reported success, and shows otherwise: %s", step.Service.ID.Name, step.Reason)}
		case step.Action == desired.ActionDisconnect && w.removedCount == maxRemoved:
			w.hasMore = true
			return nil
		case !valid():
			return conflict.ErrLeaseExpired
		}
		done[key] = true
		if err := w.runStep(ctx, &step); err != nil {
			return fmt.Errorf("%s: %w", step.Reason, err)
		}
	}
}

func (w *frontendWork) nextStep(ctx context.Context) (desired.Step, error) {
	var subnet *lb.Subnet
	if id := desired.RequiredSubnet(w.decision, w.links); id != "" {
		shown, err := w.subnets.getSubnet(ctx, id)
		if err != nil {
			return desired.Step{}, err
		}
		subnet = &shown
	}
	return desired.NextStep(w.Frontend, w.decision, w.links, subnet, w.Settings), nil
}

// stepError returns nil for a completed step.
func (w *frontendWork) stepError(step desired.Step) error {
	if step.Action == desired.ActionWait {
		return w.updatingFault(CodeUpdating, step.Reason)
	}
	if !slices.ContainsFunc(w.requests, func(req *Request) bool { return w.remainingLink(req) != "" }) {
		w.InProgress.RecordIdle(w.ID)
	}
	if holding := desired.DescribePublishers(w.Frontend, w.links); w.removeAll && holding != "" {
		return w.updatingFault(CodeFrontendInUse, "the frontend cannot go: "+holding+". Its tags show no owner of this cluster: detach it from the frontend")
	}
	return nil
}

// updatingFault returns a retriable fault with backoff.
func (w *frontendWork) updatingFault(code, reason string) error {
	pause := armerror.FromError(w.InProgress.RecordUpdating(w.ID, time.Now())).RetryAt
	return &armerror.Fault{Class: armerror.Retriable, Code: code, Reason: "conflict", RetryAt: pause, Err: errors.New(reason)}
}

// leaveConflict reports whether a conflict with another writer prevents the change.
func (w *frontendWork) leaveConflict(step desired.Step) bool {
	at := w.ownerRequest()
	if at < 0 {
		return false
	}
	var diffs []conflict.RevertedPart
	name := "private link service " + step.Service.ID.Name
	if step.Action == desired.ActionUpdate {
		diffs = append(diffs, conflict.RevertedPart{Part: strings.ToLower(name), Text: step.Reason})
	}
	return w.Conflicts.RecordReverts(conflict.PrivateLinks, w.decision.Owner, w.requests[at].DesiredKey, name, diffs, time.Now())
}

// ownerRequest returns a negative index if the owner is not in this round.
func (w *frontendWork) ownerRequest() int {
	return slices.IndexFunc(w.requests, func(req *Request) bool { return req.Service == w.decision.Owner })
}

// continueLater requests another round, with backoff if connections don't decrease.
func (w *frontendWork) continueLater(req *Request) {
	count := len(w.findLink(w.lastStep.Service.ID).Connections)
	if before, ok := req.remaining[w.ID]; ok && count >= before {
		req.setError(w.updatingFault(CodeUpdating, fmt.Sprintf("private link service %s has %d connections yet, and they become no fewer: others connect, or Azure keeps them", w.lastStep.Service.ID.Name, count)))
		return
	}
	if req.remaining == nil {
		req.remaining = map[string]int{}
	}
	req.remaining[w.ID], req.HasMore = count, true
}

// remainingLink returns what a Service without a request still owns on a frozen frontend, or "".
func (w *frontendWork) remainingLink(req *Request) string {
	if req.requestsLink() || w.removeAll || !w.mayBeIncomplete() {
		return ""
	}
	for _, p := range desired.ManagedLinks(w.Frontend, w.links, w.Settings) {
		if desired.OwnerOf(p) == req.Service {
			return p.ID.Name
		}
	}
	return ""
}

func (w *frontendWork) runStep(ctx context.Context, step *desired.Step) error {
	switch step.Action {
	case desired.ActionCreate, desired.ActionUpdate:
		shown, err := w.Azure.Put(ctx, step.Service)
		if err != nil {
			return err
		}
		w.storeLink(step.Service.ID, &shown)
		step.Service = shown
	case desired.ActionOpenSubnet:
		opened, err := w.subnets.openSubnet(ctx, step.Subnet)
		if err != nil || !opened {
			return err
		}
	case desired.ActionDisconnect:
		w.removedCount++
		if err := w.Azure.DeleteConnection(ctx, step.Service.ID, step.Connection); err != nil {
			return err
		}
		shown, err := w.Azure.Get(ctx, step.Service.ID) // with the new etag
		switch f := armerror.FromError(err); {
		case f != nil && f.Class == armerror.Stale:
			w.storeLink(step.Service.ID, nil)
		case err != nil:
			return err
		default:
			w.storeLink(step.Service.ID, &shown)
		}
	case desired.ActionDelete:
		if err := w.Azure.Delete(ctx, step.Service); err != nil {
			return err
		}
		w.storeLink(step.Service.ID, nil)
	}
	w.steps = append(w.steps, *step)
	w.Log.InfoContext(ctx, "private link service: "+string(step.Action), "frontend", w.Name, "why", step.Reason, "service", w.decision.Owner)
	return nil
}

// storeLink takes nil for deleted.
func (w *frontendWork) storeLink(id lb.ResourceID, shown *lb.PrivateLinkService) {
	w.links = slices.DeleteFunc(slices.Clone(w.links), func(p lb.PrivateLinkService) bool { return p.ID.Key() == id.Key() })
	if shown != nil {
		w.links = append(w.links, *shown)
	}
}

func (w *frontendWork) findLink(id lb.ResourceID) lb.PrivateLinkService {
	for _, p := range w.links {
		if p.ID.Key() == id.Key() {
			return p
		}
	}
	return lb.PrivateLinkService{ID: id}
}

func resourceName(id string) string { return id[strings.LastIndex(id, "/")+1:] }
