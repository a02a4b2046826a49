// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

func (w *frontendWork) storeResult() {
	for _, req := range w.notifiedRequests() {
		for _, step := range w.steps {
			req.Changed = true
			req.Events = append(req.Events, newEvent(step, w.Name))
		}
	}
	for _, req := range w.requests {
		if w.err != nil {
			req.setError(w.err)
			continue
		}
		if w.hasMore {
			w.continueLater(req)
			continue
		}
		req.IsIncomplete = req.IsIncomplete || w.mayBeIncomplete()
		if name := w.remainingLink(req); name != "" {
			req.setError(w.updatingFault(CodeUpdating, "private link service "+name+" is retained: Service "+w.decision.Owner+" on the same frontend"))
			continue
		}
		for _, p := range w.decision.Problems[req.Service] {
			req.Warnings = append(req.Warnings, Event{ReasonRejected, p.Error()})
		}
		for _, text := range w.decision.Warnings[req.Service] {
			req.Warnings = append(req.Warnings, Event{ReasonWarning, text})
		}
		if req.requestsLink() {
			req.State = w.buildState(req)
		}
		if req.State != nil && w.lastStep.Action == desired.ActionReject {
			req.Warnings = append(req.Warnings, Event{ReasonRejected, w.lastStep.Reason})
		}
	}
}

func (w *frontendWork) mayBeIncomplete() bool {
	return w.hasConflict || w.lastStep.Action == desired.ActionKeep || w.lastStep.Action == desired.ActionReject
}

// notifiedRequests returns the owner's request, or all if it has none.
func (w *frontendWork) notifiedRequests() []*Request {
	if at := w.ownerRequest(); at >= 0 {
		return w.requests[at : at+1]
	}
	return w.requests
}

func (w *frontendWork) buildState(req *Request) *State {
	var problems []string
	for _, p := range w.decision.Problems[req.Service] {
		problems = append(problems, p.Error())
	}
	switch {
	case w.lastStep.Action == desired.ActionReject:
		return &State{Reason: ReasonRejected, Text: w.lastStep.Reason}
	case w.decision.KeepCurrent && len(problems) > 0:
		return &State{Reason: ReasonRejected, Text: strings.Join(problems, "; ")}
	case w.decision.KeepCurrent:
		return &State{Reason: ReasonFrozen, Text: "it remains unchanged, because of " + service.DescribeOwner(w.decision.Owner) + ", which owns it"}
	case w.lastStep.Service.ID.Name == "":
		return &State{Reason: ReasonWaiting, Text: "nothing in the cluster's snapshot requests it yet"}
	}
	p := w.lastStep.Service
	s := &State{Reason: ReasonPublished, Alias: p.Alias, Connections: desired.CountConnections(p)}
	s.Text = fmt.Sprintf("private link service %s of resource group %s publishes frontend %s as %s: %s", p.ID.Name, p.ID.ResourceGroup, w.Name, p.Alias, s.Connections)
	if req.Service != w.decision.Owner {
		s.Reason = ReasonShared
		s.Text += ". Service " + w.decision.Owner + " owns it"
	}
	return s
}

func (r *Request) setError(err error) {
	r.Err = err
	r.State = &State{Reason: ReasonFailed, Text: err.Error()}
	if f := armerror.FromError(err); f.Code == CodeUpdating {
		r.State.Reason = ReasonWaiting
	}
}

func newEvent(s desired.Step, frontend string) Event {
	switch s.Action {
	case desired.ActionCreate:
		return Event{ReasonCreated, fmt.Sprintf("private link service %s publishes frontend %s as %s", s.Service.ID.Name, frontend, s.Service.Alias)}
	case desired.ActionOpenSubnet:
		return Event{ReasonSubnet, s.Reason + ": they are turned off"}
	case desired.ActionDisconnect:
		return Event{ReasonDisconnected, "removed: " + s.Reason}
	case desired.ActionDelete:
		return Event{ReasonDeleted, "private link service " + s.Service.ID.Name + " is deleted: " + s.Reason}
	}
	return Event{ReasonChanged, s.Reason}
}
