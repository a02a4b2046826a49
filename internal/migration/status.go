// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/migrate"
)

// Verdict is the state of a migration.
type Verdict string

// The states.
const (
	NotNeeded  Verdict = "NotNeeded"  // nothing is Basic
	NotBegun   Verdict = "NotBegun"   // something is Basic, and nothing was written
	Refused    Verdict = "Refused"    // blocked by the preflight
	Running    Verdict = "Running"    // a leader is working on it
	Leaderless Verdict = "Leaderless" // continues once a process leads
	Stopping   Verdict = "Stopping"   // requests are completing
	Halted     Verdict = "Stopped"    // requested by a user
	Undoing    Verdict = "Undoing"    // all changes are being reverted
	TakenBack  Verdict = "Undone"     // all changes were reverted; a user must start it again
	Finished   Verdict = "Done"
)

// NoSKU is the reason if azure.json doesn't set the SKU explicitly.
const NoSKU = "NoSKU"

// Over reports whether there is nothing to do.
func (v Verdict) Over() bool { return v == NotNeeded || v == Finished }

// Status is the state of a migration.
type Status struct {
	Verdict Verdict `json:"verdict"`
	// Phase is the next phase, after StepsDone of Steps.
	Phase     migrate.Phase `json:"phase,omitempty"`
	StepsDone int           `json:"stepsDone"`
	Steps     int           `json:"steps"`
	Next      PlannedStep   `json:"next"`
	// Begun is true once the journal is written, TrafficStopped once a machine has left its pools.
	Begun   bool            `json:"begun"`
	Apart   bool            `json:"apart"`
	Leader  string          `json:"leader,omitempty"`
	Asked   migrate.Asked   `json:"asked"`
	Places  []StatusAddress `json:"addresses"`
	WayBack WayBack         `json:"wayBack"`
	Undone  *migrate.Wish   `json:"undone,omitempty"`
	// Reasons block the start.
	Reasons []PlannedFinding `json:"reasons"`
	Waits   []string         `json:"waits"`
}

// WayBack is until when a migration can be undone.
type WayBack struct {
	// Until is the first phase that can't be undone; empty if it has passed.
	Until migrate.Phase `json:"until,omitempty"`
	Why   string        `json:"why,omitempty"`
}

func wayBack(j migrate.Journal, snapshot migrate.Seen) WayBack {
	until, why := j.WayBack(snapshot)
	return WayBack{until, why}
}

// String implements fmt.Stringer.
func (w WayBack) String() string {
	switch {
	case w.Until == "":
		return "It cannot be taken back: " + w.Why + "."
	case w.Why != "":
		return fmt.Sprintf("Once %s begins it cannot be taken back: %s.", w.Until, w.Why)
	}
	return fmt.Sprintf("Until %s begins, weir migrate stop --undo takes all of it back; public IPs stay Static.", w.Until)
}

// StatusAddress is a recorded address and its current location.
type StatusAddress struct {
	migrate.Address

	LoadBalancer string        `json:"loadBalancer"`
	Where        string        `json:"where"`
	Lost         bool          `json:"lost"`
	Owed         bool          `json:"owed,omitempty"`
	GivenUp      *migrate.Wish `json:"givenUp,omitempty"`
}

// Report returns the state of a migration. leader is the leading process, or "". It writes nothing,
// and needs the same Config as [Look].
func Report(ctx context.Context, cfg Config, leader string) (Status, error) {
	m := New(cfg)
	stored, requests, err := cfg.Store.Read(ctx)
	if err != nil {
		return Status{}, err
	}
	services, about := cfg.Services(), stored
	about.Done = false // so that its addresses are located
	snapshot, err := m.read(ctx, about, services)
	if err != nil {
		return Status{}, err
	}
	j := migrate.Stock(stored, snapshot, services, cfg.Location)
	s := Status{Leader: leader, Undone: stored.Undone, Asked: requests, Begun: stored.Open(), Apart: stored.Open() && stored.Apart, Steps: len(migrate.Phases()) - 1, Places: []StatusAddress{}, Reasons: []PlannedFinding{}, Waits: []string{}}
	if !j.Open() {
		j = stored
	}
	for _, b := range j.Balancers {
		for _, a := range b.Addresses {
			is := a.Where(b, snapshot)
			s.Places = append(s.Places, placed(a, b.ID.Name, is, requests))
		}
	}
	if !j.Open() {
		if s.Verdict = NotNeeded; stored.Done {
			s.Verdict, s.StepsDone = Finished, s.Steps
		}
		return s, nil
	}
	s.WayBack = wayBack(j, snapshot)
	next := migrate.Next(j, snapshot)
	if requests.Stop != nil && requests.Stop.Undo && stored.Open() && s.WayBack.Until != "" {
		next = migrate.Undo(stored, snapshot)
	}
	s.Phase, s.Waits = next.Phase, append(s.Waits, slices.Concat(next.Stops, next.Waits)...)
	s.Next = planned(next)
	if at := slices.Index(migrate.Phases(), next.Phase); at >= 0 && stored.Open() {
		s.StepsDone = at
	}
	if !cfg.Hears && !stored.Open() {
		s.Reasons = append(s.Reasons, PlannedFinding{NoSKU, true, `azure.json does not say "loadBalancerSku": "standard": nobody has asked that load balancers are taken apart`})
	}
	if (!stored.Open() || !stored.Apart) && !stored.Gone(snapshot) {
		found, err := m.before.preflight(ctx, m.cfg, j, snapshot, services)
		if err != nil {
			return Status{}, err
		}
		for _, f := range found {
			if f.Stops {
				s.Reasons = append(s.Reasons, PlannedFinding{f.Reason, f.Stops, f.What})
			}
		}
	}
	s.Verdict = s.verdict(stored)
	return s, nil
}

func placed(a migrate.Address, on string, is migrate.Whereabouts, requests migrate.Asked) StatusAddress {
	p := StatusAddress{Address: a, LoadBalancer: on, Where: is.Text, Lost: is.Lost, Owed: is.Owed}
	if request := requests.GaveUp(a); is.Owed && request != nil {
		p.Where, p.Lost, p.Owed, p.GivenUp = "given up "+request.String(), true, false, request
	}
	return p
}

func (s Status) verdict(stored migrate.Journal) Verdict {
	switch stop := s.Asked.Stop; {
	case stop != nil && stop.Undo && stored.Open() && s.WayBack.Until != "" && s.Leader != "":
		return Undoing
	case stop != nil && stop.Undo && stored.Open() && s.WayBack.Until != "":
		return Leaderless
	case stop != nil && stored.Open() && s.Leader != "" && !stored.Heard.Equal(stop.At):
		return Stopping
	case stop != nil:
		return Halted
	case len(s.Reasons) > 0:
		return Refused
	case stored.Undone != nil && s.Asked.Run == nil:
		return TakenBack
	case !stored.Open():
		return NotBegun
	case s.Leader == "":
		return Leaderless
	}
	return Running
}

// JSON returns the status as JSON.
func (s Status) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// Text returns the status for humans, the state first.
func (s Status) Text() string {
	var b strings.Builder
	b.WriteString(s.says() + "\n")
	switch {
	case !s.Begun || s.Phase == "" || s.Verdict == Refused:
	case s.Verdict == Undoing:
		fmt.Fprintf(&b, "next: %s\n", s.Next.text())
	default:
		fmt.Fprintf(&b, "%d of %d steps are done; next is %s.\n%s\n", s.StepsDone, s.Steps, s.Phase, s.WayBack)
	}
	for _, f := range s.Reasons {
		fmt.Fprintf(&b, "\nstops it (%s): %s\n", f.Reason, f.Message)
	}
	for _, w := range s.Waits {
		fmt.Fprintf(&b, "waits for: %s\n", w)
	}
	for at, a := range s.Places {
		if at == 0 || s.Places[at-1].LoadBalancer != a.LoadBalancer {
			fmt.Fprintf(&b, "\nload balancer %s\n", a.LoadBalancer)
		}
		fmt.Fprintf(&b, "  %s: %s\n", a.Address, a.Where)
	}
	return b.String()
}

// says includes the next action.
func (s Status) says() string {
	switch s.Verdict {
	case NotNeeded:
		return "Not needed: no load balancer of the cluster is Basic."
	case Finished:
		return "Done: " + s.ended()
	case Refused:
		return "Refused: something keeps it from starting. Put it right; then weir migrate run begins it."
	case NotBegun:
		if s.Asked.Run != nil {
			return "Asked for " + s.Asked.Run.String() + "\nIt begins as soon as the leader hears it."
		}
		return "Not begun: weir migrate plan shows what would be done."
	case Stopping:
		return "Stopping, asked for " + s.Asked.Stop.String() + "\nRequests under way come to their end first."
	case Undoing:
		return "Undoing, asked for " + s.Asked.Stop.String() + "\nMachines join the Basic load balancers again, and nothing else of Weir is written meanwhile."
	case TakenBack:
		return "Undone " + s.Undone.String() + "\nLoad balancers are Basic, and machines are behind them as before; public IPs that were made Static stay so. weir migrate run begins again."
	case Halted:
		if !s.Begun {
			return "Stopped " + s.Asked.Stop.String() + "\nIt does not begin until weir migrate resume; a leader that would begin by itself writes nothing else meanwhile."
		}
		return "Stopped " + s.Asked.Stop.String() + "\nNothing else of Weir is written meanwhile. weir migrate resume has it go on."
	case Leaderless:
		return "Waiting: no Weir leads, as far as its Lease shows. It goes on as soon as one does."
	}
	return "Running: " + s.Leader + " leads, and writes nothing else meanwhile."
}

func (s Status) ended() string {
	lost := 0
	var claims []string
	for _, a := range s.Places {
		switch {
		case a.Lost:
			lost++
		case a.Owed:
			claims = append(claims, a.IP.String())
		}
	}
	if len(claims) > 0 {
		return fmt.Sprintf("Azure refuses %s, whose Services get no other address. Free what holds it, or agree to another address with weir migrate give-up %s.",
			strings.Join(claims, ", "), claims[0])
	}
	if lost == 0 {
		return counted(len(s.Places), "address is where it was.", "addresses are where they were.")
	}
	return fmt.Sprintf("of %s, %d not where it was at the end, or since then.", counted(len(s.Places), "address", "addresses"), lost)
}
