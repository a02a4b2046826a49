// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/words"
)

// Types of the conditions on a Service that say how far it is, named as those of Gateway API.
const (
	// TypeAccepted is False while the Service asks for what cannot be.
	TypeAccepted = "weir.dev/Accepted"
	// TypeProgrammed is True once Azure has what the Service wants; else it says what is waited for.
	TypeProgrammed = "weir.dev/Programmed"

	typeContests, typeLink = "contests", "link" // by which those are known here that a Ledger words
)

// Reasons of TypeAccepted. What is WhyOpen is accepted, and everybody may connect. What is WhyPartial is accepted
// without the parts that are wrong.
const (
	WhyAccepted = "Accepted"
	WhyInvalid  = "Invalid"
	WhyOpen     = ReasonNoEffect
	WhyPartial  = ReasonPartial
)

// Reasons of TypeProgrammed.
const (
	WhyProgrammed  = "Programmed"
	WhyNoEndpoints = "NoEndpoints"
	WhyNotGuarded  = ReasonNotGuarded
	WhyNotAccepted = "NotAccepted"
	WhyUpdating    = "Updating"
	WhyRetryAfter  = "RetryAfter"
	WhyRefused     = "Refused"
	WhyFailed      = "Failed"
	WhyContested   = "Contested"
	WhyPoolFilling = "PoolFilling"
	WhyPoolEmpty   = "PoolEmpty"
	WhyHeld        = "RemovalHeld"
	WhyDeferred    = "Deferred"
	WhyKept        = "OtherClass"
	WhyLeaving     = "Leaving"
	WhyDryRun      = "DryRun"
	// WhyMigrating is said before anything else is: its load balancer is Basic, and becomes a Standard one.
	WhyMigrating = "Migrating"
)

// Verdict is a condition on a Service. Without a reason it goes.
type Verdict struct {
	Type, Reason, Text string
}

// Conclusion is what the status of a Service is to say: conditions, and, if it shows them, the addresses.
type Conclusion struct {
	Verdicts  []Verdict
	Shows     bool
	Addresses []netip.Addr
	// Anew is true of conditions that are not those that were written last: the informer's copy may be older
	// than these, and show them already.
	Anew bool
}

// writes has the conditions of a Service written, and keeps what was.
func (r *Reconciler) writes(ctx context.Context, s Service, st *State, c Conclusion) error {
	for _, v := range c.Verdicts {
		c.Anew = st.Told.writes(v) || c.Anew
	}
	if err := r.cfg.Ledger.Conclude(ctx, s, c); err != nil {
		return err
	}
	for _, v := range c.Verdicts {
		st.Told.wrote[v.Type] = v
	}
	return nil
}

// writes reports whether a condition is another than this process wrote last. What there is after it nobody knows
// before it is answered.
func (t *Told) writes(v Verdict) (anew bool) {
	if t.wrote == nil {
		t.wrote = map[string]Verdict{}
	}
	last, wrote := t.wrote[v.Type]
	t.wrote[v.Type] = Verdict{Text: "nobody knows before it is answered"}
	return wrote && (last.Reason != v.Reason || !words.Same(last.Text, v.Text))
}

// Holds reports whether the condition is True.
func (v Verdict) Holds() bool {
	return v.Reason == WhyAccepted || v.Reason == WhyProgrammed || Noted(v.Reason)
}

// Noted reports whether a reason is one of a condition that is True, and that people want to know of.
func Noted(reason string) bool {
	return reason == WhyOpen || reason == WhyPartial || reason == WhyNotGuarded || reason == WhyNoEndpoints
}

// noVerdicts has the conditions of a Service that Weir has left go.
func noVerdicts() []Verdict { return []Verdict{{Type: TypeAccepted}, {Type: TypeProgrammed}} }

// judges takes in whether a Service asks for what can be.
func (t *Told) judges(d Desired) {
	t.judged, t.wrong, t.ports = true, "", nil
	if len(d.Problems)+len(d.Flaws) > 0 {
		t.ports = wrongPorts(d)
	}
	if len(d.Problems) > 0 {
		t.wrong = d.wrong()
	}
}

// wrongPorts are the ports that have problems or flaws of their own, with the first of each.
func wrongPorts(d Desired) map[service.PortRef]string {
	of := map[service.PortRef]string{}
	add := func(p service.Problem) {
		if port, why := p.OfPort(); port.Port != 0 && of[port] == "" {
			of[port] = why
		}
	}
	for _, p := range d.Problems {
		add(p)
	}
	for _, f := range d.Flaws {
		add(f.Problem)
	}
	return of
}

// verdicts are the conditions of a Service that was looked at. What is not known yet is not among
// them: what an earlier look, or process, said stands until then.
func (st *State) verdicts(s Service, class string, now time.Time) (all []Verdict) {
	switch ours := s.Ours(class); {
	case st.Placement.absent, s.Deleting && st.Told.trouble == "":
		return nil // they go with it
	case !ours && st.Placement.free: // they are gone; see conclude
		return nil
	case ours && st.Told.judged:
		all = append(all, st.Told.accepted())
	}
	if reason, text := st.programmed(s, class, now); reason != "" {
		all = append(all, Verdict{TypeProgrammed, reason, text})
	}
	return all
}

// accepted says whether a Service asks for what can be, and will have an effect.
func (t *Told) accepted() Verdict {
	switch {
	case t.wrong != "":
		return Verdict{TypeAccepted, WhyInvalid, t.wrong}
	case t.unenforced != "":
		return Verdict{TypeAccepted, WhyOpen, t.unenforced}
	case t.flaws != "":
		return Verdict{TypeAccepted, WhyPartial, t.flaws}
	}
	return Verdict{TypeAccepted, WhyAccepted, "Everything that the Service asks for can be had"}
}

// programmed says why a Service is programmed, or is not; nothing while that is not known. A further
// try of what failed is no news before its end.
func (st *State) programmed(s Service, class string, now time.Time) (reason, text string) {
	ours, t := s.Ours(class), st.Told
	switch {
	case ours && t.judged && t.wrong != "":
		return WhyNotAccepted, "Azure keeps what it had of the Service: see the condition " + TypeAccepted
	case ours && s.DryRun && t.trouble == "" && !st.Pending.Running:
		return WhyDryRun, "Nothing is written to Azure while the Service is only planned: the last event with reason " + ReasonDryRun + " says what would change"
	case st.Pending.Running && t.trouble == "" && t.announced && ours:
		return WhyUpdating, "Azure is asked for what the Service wants, and has not got all of it yet"
	case st.Pending.Running && (ours || t.trouble != ""):
		return "", ""
	}
	switch is := st.condition(ours, now); is {
	case Ready:
		return st.has(s)
	case Contested:
		return WhyContested, "Somebody else keeps undoing what Weir writes: see the condition weir.dev/Contested"
	case Leaving:
		return WhyLeaving, "The Service gives its load balancer up, and Azure still holds something of it"
	case Waits:
		return st.waitsFor()
	default:
		return troubles[is], heldText(is) + t.last
	}
}

// has says of a Service that Azure has all of what people want to know all the same.
func (st *State) has(s Service) (reason, text string) {
	switch {
	case st.Unfilled.is:
		return WhyPoolEmpty, st.Unfilled.text()
	case st.Told.note != "":
		return WhyNotGuarded, st.Told.note
	case st.Endpoints.empty:
		return WhyNoEndpoints, s.emptyText()
	}
	return WhyProgrammed, "Azure has what the Service wants"
}

// troubles are the reasons of what somebody was told of.
var troubles = map[Condition]string{Refused: WhyRefused, Failed: WhyFailed, Kept: WhyKept, Held: WhyHeld, Deferred: WhyDeferred}

// heldText comes before the addresses that a Service would lose.
func heldText(is Condition) string {
	if is == Held {
		return "A person has to allow it, with the annotation " + AllowRemovalAnnotation + ", that the Service loses "
	}
	return ""
}

// waitsFor says what a Service waits for that has not failed.
func (st *State) waitsFor() (reason, text string) {
	switch {
	case st.Told.last != "":
		return WhyRetryAfter, "Azure asked for patience: " + st.Told.last
	case st.Filling.asked != nil:
		return WhyPoolFilling, "Its backend pools are filled before flows are sent there: their BackendPools say what keeps them"
	}
	return "", ""
}

// conclusions writes down the conditions of a Service, after all else of a look.
func (r *Reconciler) conclusions(ctx context.Context, s Service, st *State, now time.Time) error {
	if st.Told.judged && !st.Placement.absent && s.Ours(r.cfg.Settings.Class) {
		if err := r.cfg.Ledger.RefusePorts(ctx, s, st.Told.ports); err != nil {
			return err
		}
	}
	verdicts := st.verdicts(s, r.cfg.Settings.Class, now)
	if len(verdicts) == 0 || slices.Equal(verdicts, st.Told.concluded) {
		return nil
	}
	return r.writes(ctx, s, st, Conclusion{Verdicts: verdicts})
}

// concludes writes the addresses of a Service that Azure has all of, and with them the conditions that its
// look ends with, where that is certain: who waits for it sees both at once, and it is one request.
func (r *Reconciler) concludes(ctx context.Context, s Service, st *State, res balancer.Result, now time.Time) error {
	c := Conclusion{Shows: true, Addresses: st.Level.addresses}
	if res.Link.Err == nil && len(res.Contests) == 0 {
		after := *st // as settle and conclude leave it
		after.Told.reached(res)
		after.Level.reached(res, st.Pending, now, r.cfg.Settings.LookAgainAfter)
		r.endpoints(s, &after, now)
		c.Verdicts = after.verdicts(s, r.cfg.Settings.Class, now)
	}
	if err := r.writes(ctx, s, st, c); err != nil {
		return err
	}
	st.Told.concluded = c.Verdicts
	return nil
}
