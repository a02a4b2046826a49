// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/skumigration/phase"
)

// State is the state of a migration.
type State string

// The states.
const (
	StateNotNeeded  State = "NotNeeded"  // nothing is Basic
	StateNotStarted State = "NotBegun"   // something is Basic, and nothing was written
	StateBlocked    State = "Refused"    // blocked by the preflight
	StateRunning    State = "Running"    // a leader is working on it
	StateNoLeader   State = "Leaderless" // continues once a process leads
	StateStopping   State = "Stopping"   // requests are completing
	StateStopped    State = "Stopped"    // requested by a user
	StateUndoing    State = "Undoing"    // all changes are being reverted
	StateUndone     State = "Undone"     // all changes were reverted; a user must start it again
	StateDone       State = "Done"
)

// ReasonNoSKU is the reason if azure.json doesn't set the SKU explicitly.
const ReasonNoSKU = "NoSKU"

// IsDone reports whether there is nothing to do.
func (s State) IsDone() bool { return s == StateNotNeeded || s == StateDone }

// Status is the state of a migration.
type Status struct {
	State State `json:"state"`
	// Phase is the next phase, after StepsDone of Steps.
	Phase     phase.Phase `json:"phase,omitempty"`
	StepsDone int         `json:"stepsDone"`
	Steps     int         `json:"steps"`
	Next      PlanStep    `json:"next"`
	// Started is true once the journal is written, TrafficStopped once a machine has left its pools.
	Started        bool               `json:"started"`
	TrafficStopped bool               `json:"trafficStopped"`
	Leader         string             `json:"leader,omitempty"`
	Requests       phase.UserRequests `json:"requests"`
	Addresses      []StatusAddress    `json:"addresses"`
	Undo           UndoInfo           `json:"undo"`
	CompletedUndo  *phase.UserRequest `json:"completedUndo,omitempty"`
	// Reasons block the start.
	Reasons     []PlanFinding `json:"reasons"`
	WaitReasons []string      `json:"waitReasons"`
}

// UndoInfo is until when a migration can be undone.
type UndoInfo struct {
	// Until is the first phase that can't be undone; empty if it has passed.
	Until  phase.Phase `json:"until,omitempty"`
	Reason string      `json:"reason,omitempty"`
}

func newUndoInfo(j phase.Journal, snapshot phase.Snapshot) UndoInfo {
	until, reason := j.UndoLimit(snapshot)
	return UndoInfo{until, reason}
}

// String implements fmt.Stringer.
func (u UndoInfo) String() string {
	switch {
	case u.Until == "":
		return "It cannot be taken back: " + u.Reason + "."
	case u.Reason != "":
		return fmt.Sprintf("Once %s begins it cannot be taken back: %s.", u.Until, u.Reason)
	}
	return fmt.Sprintf("Until %s starts, weir migrate stop --undo reverts all of it; public IPs remain Static.", u.Until)
}

// StatusAddress is a recorded address and its current location.
type StatusAddress struct {
	phase.Address

	LoadBalancer   string             `json:"loadBalancer"`
	Location       string             `json:"location"`
	Lost           bool               `json:"lost"`
	IsClaim        bool               `json:"claim,omitempty"`
	ReleaseRequest *phase.UserRequest `json:"releaseRequest,omitempty"`
}

// BuildStatus returns the state of a migration. leader is the leading process, or "". It writes nothing,
// and needs the same Config as [BuildPlan].
func BuildStatus(ctx context.Context, cfg Config, leader string) (Status, error) {
	m := New(cfg)
	stored, requests, err := cfg.Store.Load(ctx)
	if err != nil {
		return Status{}, err
	}
	services, about := cfg.Services(), stored
	about.Done = false // so that its addresses are located
	snapshot, err := m.readSnapshot(ctx, about, services)
	if err != nil {
		return Status{}, err
	}
	j := phase.BuildJournal(stored, snapshot, services, cfg.Location)
	s := Status{Leader: leader, CompletedUndo: stored.CompletedUndo, Requests: requests, Started: stored.IsOpen(), TrafficStopped: stored.IsOpen() && stored.TrafficStopped, Steps: len(phase.Phases()) - 1, Addresses: []StatusAddress{}, Reasons: []PlanFinding{}, WaitReasons: []string{}}
	if !j.IsOpen() {
		j = stored
	}
	for _, b := range j.LoadBalancers {
		for _, a := range b.Addresses {
			location := a.Locate(b, snapshot)
			s.Addresses = append(s.Addresses, newStatusAddress(a, b.ID.Name, location, requests))
		}
	}
	if !j.IsOpen() {
		if s.State = StateNotNeeded; stored.Done {
			s.State, s.StepsDone = StateDone, s.Steps
		}
		return s, nil
	}
	s.Undo = newUndoInfo(j, snapshot)
	next := phase.NextSteps(j, snapshot)
	if requests.Stop != nil && requests.Stop.Undo && stored.IsOpen() && s.Undo.Until != "" {
		next = phase.NextUndoSteps(stored, snapshot)
	}
	s.Phase, s.WaitReasons = next.Phase, append(s.WaitReasons, slices.Concat(next.StopReasons, next.WaitReasons)...)
	s.Next = newPlanStep(next)
	if at := slices.Index(phase.Phases(), next.Phase); at >= 0 && stored.IsOpen() {
		s.StepsDone = at
	}
	if !cfg.AcceptRequests && !stored.IsOpen() {
		s.Reasons = append(s.Reasons, PlanFinding{ReasonNoSKU, true, `azure.json does not say "loadBalancerSku": "standard": no user has requested a migration`})
	}
	if (!stored.IsOpen() || !stored.TrafficStopped) && !stored.HasDeletedLoadBalancer(snapshot) {
		found, err := m.preflight.check(ctx, m.cfg, j, snapshot, services)
		if err != nil {
			return Status{}, err
		}
		for _, f := range found {
			if f.IsBlocker {
				s.Reasons = append(s.Reasons, PlanFinding{f.Reason, f.IsBlocker, f.Message})
			}
		}
	}
	s.State = s.currentState(stored)
	return s, nil
}

func newStatusAddress(a phase.Address, on string, location phase.Location, requests phase.UserRequests) StatusAddress {
	p := StatusAddress{Address: a, LoadBalancer: on, Location: location.Text, Lost: location.Lost, IsClaim: location.IsClaim}
	if request := requests.FindRelease(a); location.IsClaim && request != nil {
		p.Location, p.Lost, p.IsClaim, p.ReleaseRequest = "given up "+request.String(), true, false, request
	}
	return p
}

func (s Status) currentState(stored phase.Journal) State {
	switch stop := s.Requests.Stop; {
	case stop != nil && stop.Undo && stored.IsOpen() && s.Undo.Until != "" && s.Leader != "":
		return StateUndoing
	case stop != nil && stop.Undo && stored.IsOpen() && s.Undo.Until != "":
		return StateNoLeader
	case stop != nil && stored.IsOpen() && s.Leader != "" && !stored.StopSeenAt.Equal(stop.At):
		return StateStopping
	case stop != nil:
		return StateStopped
	case len(s.Reasons) > 0:
		return StateBlocked
	case stored.CompletedUndo != nil && s.Requests.Run == nil:
		return StateUndone
	case !stored.IsOpen():
		return StateNotStarted
	case s.Leader == "":
		return StateNoLeader
	}
	return StateRunning
}

// JSON returns the status as JSON.
func (s Status) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// Text returns the status for humans, the state first.
func (s Status) Text() string {
	var b strings.Builder
	b.WriteString(s.summary() + "\n")
	switch {
	case !s.Started || s.Phase == "" || s.State == StateBlocked:
	case s.State == StateUndoing:
		fmt.Fprintf(&b, "next: %s\n", s.Next.format())
	default:
		fmt.Fprintf(&b, "%d of %d steps are done; next is %s.\n%s\n", s.StepsDone, s.Steps, s.Phase, s.Undo)
	}
	for _, f := range s.Reasons {
		fmt.Fprintf(&b, "\nstops it (%s): %s\n", f.Reason, f.Message)
	}
	for _, w := range s.WaitReasons {
		fmt.Fprintf(&b, "waits for: %s\n", w)
	}
	for at, a := range s.Addresses {
		if at == 0 || s.Addresses[at-1].LoadBalancer != a.LoadBalancer {
			fmt.Fprintf(&b, "\nload balancer %s\n", a.LoadBalancer)
		}
		fmt.Fprintf(&b, "  %s: %s\n", a.Address, a.Location)
	}
	return b.String()
}

// summary includes the next action.
func (s Status) summary() string {
	switch s.State {
	case StateNotNeeded:
		return "Not needed: no load balancer of the cluster is Basic."
	case StateDone:
		return "Done: " + s.resultSummary()
	case StateBlocked:
		return "Refused: something keeps it from starting. Put it right; then weir migrate run begins it."
	case StateNotStarted:
		if s.Requests.Run != nil {
			return "Requested " + s.Requests.Run.String() + "\nIt starts as soon as the leader reads it."
		}
		return "Not begun: weir migrate plan shows what would be done."
	case StateStopping:
		return "Stopping, requested " + s.Requests.Stop.String() + "\nRequests under way come to their end first."
	case StateUndoing:
		return "Undoing, requested " + s.Requests.Stop.String() + "\nMachines join the Basic load balancers again, and nothing else of Weir is written meanwhile."
	case StateUndone:
		return "Undone " + s.CompletedUndo.String() + "\nLoad balancers are Basic, with machines in their pools as before; public IPs that became Static remain Static. weir migrate run starts again."
	case StateStopped:
		if !s.Started {
			return "Stopped " + s.Requests.Stop.String() + "\nIt does not start until weir migrate resume; a leader that would start it writes nothing else meanwhile."
		}
		return "Stopped " + s.Requests.Stop.String() + "\nNothing else of Weir is written meanwhile. weir migrate resume has it go on."
	case StateNoLeader:
		return "Waiting: no Weir leads according to its Lease. It continues as soon as one does."
	}
	return "Running: " + s.Leader + " leads, and writes nothing else meanwhile."
}

func (s Status) resultSummary() string {
	lost := 0
	var claims []string
	for _, a := range s.Addresses {
		switch {
		case a.Lost:
			lost++
		case a.IsClaim:
			claims = append(claims, a.IP.String())
		}
	}
	if len(claims) > 0 {
		return fmt.Sprintf("Azure refuses %s, whose Services get no other address. Free what holds it, or agree to another address with weir migrate give-up %s.",
			strings.Join(claims, ", "), claims[0])
	}
	if lost == 0 {
		return pluralize(len(s.Addresses), "address is where it was.", "addresses are where they were.")
	}
	return fmt.Sprintf("of %s, %d not where it was at the end, or since then.", pluralize(len(s.Addresses), "address", "addresses"), lost)
}
