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

// Condition types of a Service, named as in Gateway API.
const (
	// TypeAccepted is False while the Service is invalid.
	TypeAccepted = "weir.dev/Accepted"
	// TypeProgrammed is True once Azure is in sync; otherwise its reason is what is waited for.
	TypeProgrammed = "weir.dev/Programmed"

	typeContests, typeLink = "contests", "link" // internal keys; the status store formats these conditions
)

// Reasons of TypeAccepted. WhyOpen: accepted, but any client may connect. WhyPartial: accepted without the
// invalid parts.
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
	// WhyMigrating takes precedence: the load balancer is being migrated from Basic to Standard.
	WhyMigrating = "Migrating"
)

// Verdict is a condition of a Service; without a reason it is removed.
type Verdict struct {
	Type, Reason, Text string
}

// Conclusion is the status update of a Service: conditions and optionally addresses.
type Conclusion struct {
	Verdicts  []Verdict
	Shows     bool
	Addresses []netip.Addr
	// Anew is set for conditions that differ from those written last. The informer cache may be older and
	// already show them.
	Anew bool
}

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

// writes reports whether a condition differs from the last one written. The written state is unknown until the
// request succeeds.
func (t *Told) writes(v Verdict) (changed bool) {
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

// Noted reports whether a True condition has a reason that the user should know.
func Noted(reason string) bool {
	return reason == WhyOpen || reason == WhyPartial || reason == WhyNotGuarded || reason == WhyNoEndpoints
}

func noVerdicts() []Verdict { return []Verdict{{Type: TypeAccepted}, {Type: TypeProgrammed}} }

func (t *Told) judges(d Desired) {
	t.judged, t.wrong, t.ports = true, "", nil
	if len(d.Problems)+len(d.Flaws) > 0 {
		t.ports = wrongPorts(d)
	}
	if len(d.Problems) > 0 {
		t.wrong = d.wrong()
	}
}

func wrongPorts(d Desired) map[service.PortRef]string {
	of := map[service.PortRef]string{}
	add := func(p service.Problem) {
		if port, reason := p.OfPort(); port.Port != 0 && of[port] == "" {
			of[port] = reason
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

// verdicts returns the conditions after a reconcile, without unknown ones: these keep their previous value.
func (st *State) verdicts(s Service, class string, now time.Time) (all []Verdict) {
	switch managed := s.Ours(class); {
	case st.Placement.absent, s.Deleting && st.Told.trouble == "":
		return nil // deleted with the Service
	case !managed && st.Placement.free: // already removed
		return nil
	case managed && st.Told.judged:
		all = append(all, st.Told.accepted())
	}
	if reason, text := st.programmed(s, class, now); reason != "" {
		all = append(all, Verdict{TypeProgrammed, reason, text})
	}
	return all
}

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

// programmed returns reason and message of TypeProgrammed; empty while unknown. A retry does not change it
// before its result.
func (st *State) programmed(s Service, class string, now time.Time) (reason, text string) {
	managed, t := s.Ours(class), st.Told
	switch {
	case managed && t.judged && t.wrong != "":
		return WhyNotAccepted, "Azure keeps what it had of the Service: see the condition " + TypeAccepted
	case managed && s.DryRun && t.trouble == "" && !st.Pending.Running:
		return WhyDryRun, "Nothing is written to Azure while the Service is only planned: the last event with reason " + ReasonDryRun + " says what would change"
	case st.Pending.Running && t.trouble == "" && t.announced && managed:
		return WhyUpdating, "Azure is asked for what the Service wants, and has not got all of it yet"
	case st.Pending.Running && (managed || t.trouble != ""):
		return "", ""
	}
	switch condition := st.condition(managed, now); condition {
	case Ready:
		return st.has(s)
	case Contested:
		return WhyContested, "Somebody else keeps undoing what Weir writes: see the condition weir.dev/Contested"
	case Leaving:
		return WhyLeaving, "The Service gives its load balancer up, and Azure still holds something of it"
	case Waits:
		return st.waitsFor()
	default:
		return troubles[condition], heldText(condition) + t.last
	}
}

// has returns the reason and message of a Service in sync that the user should still know.
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

var troubles = map[Condition]string{Refused: WhyRefused, Failed: WhyFailed, Kept: WhyKept, Held: WhyHeld, Deferred: WhyDeferred}

func heldText(condition Condition) string {
	if condition == Held {
		return "A person has to allow it, with the annotation " + AllowRemovalAnnotation + ", that the Service loses "
	}
	return ""
}

func (st *State) waitsFor() (reason, text string) {
	switch {
	case st.Told.last != "":
		return WhyRetryAfter, "Azure asked for patience: " + st.Told.last
	case st.Filling.asked != nil:
		return WhyPoolFilling, "Its backend pools are filled before flows are sent there: their BackendPools say what keeps them"
	}
	return "", ""
}

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

// concludes writes the addresses of a Service in sync together with the final conditions, if these are certain,
// so that clients see both at once and one request suffices.
func (r *Reconciler) concludes(ctx context.Context, s Service, st *State, res balancer.Result, now time.Time) error {
	c := Conclusion{Shows: true, Addresses: st.Level.addresses}
	if res.Link.Err == nil && len(res.Contests) == 0 {
		after := *st // the state that completion would leave
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
