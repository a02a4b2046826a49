// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/privatelink"
)

func (w *work) note() {
	for _, req := range w.told() {
		for _, step := range w.done {
			req.Changed = true
			req.Events = append(req.Events, event(step, w.Name))
		}
	}
	for _, req := range w.by {
		if w.err != nil {
			req.fails(w.err)
			continue
		}
		if w.more {
			w.goesOn(req)
			continue
		}
		req.Stays = req.Stays || w.stays()
		if name := w.leftBehind(req); name != "" {
			req.fails(w.busy(CodeBusy, "private link service "+name+" stays, because of Service "+w.verdict.Owner+" on the same frontend"))
			continue
		}
		for _, p := range w.verdict.Told[req.Service] {
			req.Warnings = append(req.Warnings, Event{ReasonRefused, p.Error()})
		}
		for _, text := range w.verdict.Warned[req.Service] {
			req.Warnings = append(req.Warnings, Event{ReasonWarned, text})
		}
		if req.asks() {
			req.State = w.state(req)
		}
		if req.State != nil && w.last.Do == privatelink.Refuse {
			req.Warnings = append(req.Warnings, Event{ReasonRefused, w.last.Why})
		}
	}
}

func (w *work) stays() bool {
	return w.contested || w.last.Do == privatelink.Hold || w.last.Do == privatelink.Refuse
}

// told returns the owner's request, or all if it has none.
func (w *work) told() []*Request {
	if at := w.asker(); at >= 0 {
		return w.by[at : at+1]
	}
	return w.by
}

func (w *work) state(req *Request) *State {
	var problems []string
	for _, p := range w.verdict.Told[req.Service] {
		problems = append(problems, p.Error())
	}
	switch {
	case w.last.Do == privatelink.Refuse:
		return &State{Reason: ReasonRefused, Text: w.last.Why}
	case w.verdict.Holds && len(problems) > 0:
		return &State{Reason: ReasonRefused, Text: strings.Join(problems, "; ")}
	case w.verdict.Holds:
		return &State{Reason: ReasonHeld, Text: "it stays as it is, because of Service " + w.verdict.Owner + ", which owns it"}
	case w.last.Service.ID.Name == "":
		return &State{Reason: ReasonWaits, Text: "nothing of the cluster's snapshot asks for it yet"}
	}
	p := w.last.Service
	s := &State{Reason: ReasonPublished, Alias: p.Alias, Connections: privatelink.Connections(p)}
	s.Text = fmt.Sprintf("private link service %s of resource group %s publishes frontend %s as %s: %s", p.ID.Name, p.ID.ResourceGroup, w.Name, p.Alias, s.Connections)
	if req.Service != w.verdict.Owner {
		s.Reason = ReasonShared
		s.Text += ". Service " + w.verdict.Owner + " owns it"
	}
	return s
}

func (r *Request) fails(err error) {
	r.Err = err
	r.State = &State{Reason: ReasonFailed, Text: err.Error()}
	if f := fault.From(err); f.Code == CodeBusy {
		r.State.Reason = ReasonWaits
	}
}

func event(s privatelink.Step, frontend string) Event {
	switch s.Do {
	case privatelink.Create:
		return Event{ReasonCreated, fmt.Sprintf("private link service %s publishes frontend %s as %s", s.Service.ID.Name, frontend, s.Service.Alias)}
	case privatelink.OpenSubnet:
		return Event{ReasonSubnet, s.Why + ": they are turned off"}
	case privatelink.Disconnect:
		return Event{ReasonDisconnected, "removed: " + s.Why}
	case privatelink.Delete:
		return Event{ReasonDeleted, "private link service " + s.Service.ID.Name + " is deleted: " + s.Why}
	}
	return Event{ReasonChanged, s.Why}
}
