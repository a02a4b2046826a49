// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
)

// CodeBusy is the fault code while Azure is busy.
const CodeBusy = "PrivateLinkServiceBusy"

// CodePublished is the fault code of a published frontend to be deleted.
const CodePublished = "FrontendIsPublished"

// work is not safe for concurrent use.
type work struct {
	*round
	frontend
	sharers []privatelink.Sharer
	// clears is true if no Private Link Service may remain.
	clears  bool
	seen    []lb.PrivateLinkService
	verdict privatelink.Verdict

	// last writes nothing; done are the steps before it. hasConflict is true if a difference is
	// left because of a conflict.
	last      privatelink.Step
	done      []privatelink.Step
	contested bool
	removed   int
	more      bool
	err       error
}

func (w *work) judge() {
	if !w.clears {
		w.verdict = privatelink.Share(w.Frontend, w.Settings, w.sharers, w.seen)
	}
}

func (w *work) advance(ctx context.Context, valid func() bool) error {
	checked := false
	for made := map[string]bool{}; ; {
		step, err := w.next(ctx)
		if err != nil {
			return err
		}
		if !checked && (step.Do == privatelink.Change || step.Do == privatelink.Level) {
			checked = true
			if w.contested = w.leave(step); w.contested {
				step.Do = privatelink.Level
				step.Service = w.known(step.Service.ID)
			}
		}
		if step.Do == privatelink.Create && w.asker() < 0 { // its resource group may not be recorded yet
			step = privatelink.Step{Do: privatelink.Level}
		}
		w.last = step
		if !step.Writes() {
			return w.ends(step)
		}
		what := strings.Join([]string{string(step.Do), step.Service.ID.Key(), step.Connection.Name, step.Subnet.Name}, "/")
		switch {
		case made[what]:
			w.Contests.ShownOtherwise(contest.PrivateLinks, w.verdict.Owner, time.Now())
			return &fault.Fault{Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown",
				Err: fmt.Errorf("private link service %s: Azure reported success, and shows otherwise: %s", step.Service.ID.Name, step.Why)}
		case step.Do == privatelink.Disconnect && w.removed == mostRemoved:
			w.more = true
			return nil
		case !valid():
			return contest.ErrLeaseLost
		}
		made[what] = true
		if err := w.do(ctx, &step); err != nil {
			return fmt.Errorf("%s: %w", step.Why, err)
		}
	}
}

func (w *work) next(ctx context.Context) (privatelink.Step, error) {
	var subnet *lb.Subnet
	if id := privatelink.SubnetOf(w.verdict, w.seen); id != "" {
		shown, err := w.subnets.get(ctx, id)
		if err != nil {
			return privatelink.Step{}, err
		}
		subnet = &shown
	}
	return privatelink.Next(w.Frontend, w.verdict, w.seen, subnet, w.Settings), nil
}

// ends returns nil for a completed step.
func (w *work) ends(step privatelink.Step) error {
	if step.Do == privatelink.Wait {
		return w.busy(CodeBusy, step.Why)
	}
	if !slices.ContainsFunc(w.by, func(req *Request) bool { return w.leftBehind(req) != "" }) {
		w.InProgress.Free(w.ID)
	}
	if holding := privatelink.Holding(w.Frontend, w.seen); w.clears && holding != "" {
		return w.busy(CodePublished, "the frontend cannot go: "+holding+". By its tags nobody of this cluster made it: take it off the frontend")
	}
	return nil
}

// busy returns a retriable fault with backoff.
func (w *work) busy(code, reason string) error {
	pause := fault.From(w.InProgress.Found(w.ID, time.Now())).RetryAt
	return &fault.Fault{Class: fault.Retriable, Code: code, Reason: "conflict", RetryAt: pause, Err: errors.New(reason)}
}

// leave reports whether a conflict with another writer prevents the change.
func (w *work) leave(step privatelink.Step) bool {
	at := w.asker()
	if at < 0 {
		return false
	}
	var diffs []contest.Undone
	name := "private link service " + step.Service.ID.Name
	if step.Do == privatelink.Change {
		diffs = append(diffs, contest.Undone{Part: strings.ToLower(name), Text: step.Why})
	}
	return w.Contests.Leave(contest.PrivateLinks, w.verdict.Owner, w.by[at].Asked, name, diffs, time.Now())
}

// asker returns a negative index if the owner is not in this round.
func (w *work) asker() int {
	return slices.IndexFunc(w.by, func(req *Request) bool { return req.Service == w.verdict.Owner })
}

// goesOn requests another round, with backoff if connections don't decrease.
func (w *work) goesOn(req *Request) {
	left := len(w.known(w.last.Service.ID).Connections)
	if before, again := req.left[w.ID]; again && left >= before {
		req.fails(w.busy(CodeBusy, fmt.Sprintf("private link service %s has %d connections yet, and they become no fewer: others connect, or Azure keeps them", w.last.Service.ID.Name, left)))
		return
	}
	if req.left == nil {
		req.left = map[string]int{}
	}
	req.left[w.ID], req.More = left, true
}

// leftBehind returns what a Service without a request still owns on a frozen frontend, or "".
func (w *work) leftBehind(req *Request) string {
	if req.asks() || w.clears || !w.stays() {
		return ""
	}
	for _, p := range privatelink.Ours(w.Frontend, w.seen, w.Settings) {
		if privatelink.OwnerOf(p) == req.Service {
			return p.ID.Name
		}
	}
	return ""
}

func (w *work) do(ctx context.Context, step *privatelink.Step) error {
	switch step.Do {
	case privatelink.Create, privatelink.Change:
		shown, err := w.Azure.Put(ctx, step.Service)
		if err != nil {
			return err
		}
		w.shows(step.Service.ID, &shown)
		step.Service = shown
	case privatelink.OpenSubnet:
		did, err := w.subnets.open(ctx, step.Subnet)
		if err != nil || !did {
			return err
		}
	case privatelink.Disconnect:
		w.removed++
		if err := w.Azure.DeleteConnection(ctx, step.Service.ID, step.Connection); err != nil {
			return err
		}
		shown, err := w.Azure.Get(ctx, step.Service.ID) // with the new etag
		switch f := fault.From(err); {
		case f != nil && f.Class == fault.Stale:
			w.shows(step.Service.ID, nil)
		case err != nil:
			return err
		default:
			w.shows(step.Service.ID, &shown)
		}
	case privatelink.Delete:
		if err := w.Azure.Delete(ctx, step.Service); err != nil {
			return err
		}
		w.shows(step.Service.ID, nil)
	}
	w.done = append(w.done, *step)
	w.Log.InfoContext(ctx, "private link service: "+string(step.Do), "frontend", w.Name, "why", step.Why, "service", w.verdict.Owner)
	return nil
}

// shows takes nil for deleted.
func (w *work) shows(id lb.ResourceID, shown *lb.PrivateLinkService) {
	w.seen = slices.DeleteFunc(slices.Clone(w.seen), func(p lb.PrivateLinkService) bool { return p.ID.Key() == id.Key() })
	if shown != nil {
		w.seen = append(w.seen, *shown)
	}
}

func (w *work) known(id lb.ResourceID) lb.PrivateLinkService {
	for _, p := range w.seen {
		if p.ID.Key() == id.Key() {
			return p
		}
	}
	return lb.PrivateLinkService{ID: id}
}

func lastPart(id string) string { return id[strings.LastIndex(id, "/")+1:] }
