// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/words"
)

// Told is what was reported about a Service.
type Told struct {
	// announced is set until the ready event. The other flag is set once the Service had a load balancer.
	announced, had bool
	// last is the last warning; empty once the load balancer is ready. The others are its condition and the
	// last logged error.
	last, warned string
	trouble      Condition
	wrong        string
	judged       bool
	// concluded are the conditions already written by this reconcile; the informer cache may not show them yet.
	// nil for none.
	concluded []Verdict
	wrote     map[string]Verdict
	// ports are the errors of ports. flaws are those of parts that are left out.
	ports   map[service.PortRef]string
	flaws   string
	proxied string
	filling map[lb.PoolKey]bool
	links   map[string]bool
	// What was reported last: the note of a result, pools retained for foreign members, unused public IPs,
	// pools with remaining network interfaces, and annotations and restrictions without effect.
	note       string
	left       map[string]bool
	unusedIPs  map[string]bool
	emptying   map[lb.PoolKey]bool
	unknown    []string
	unenforced string
}

// troubleOf classifies an error: the user must fix errors that neither Azure nor the network caused.
func troubleOf(err error) Condition {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return Failed
	}
	return Refused
}

// planned clears earlier reports once a dry run succeeds. A blocked removal remains reported.
func (t *Told) planned() {
	if t.last = ""; t.trouble != Held {
		t.trouble = ""
	}
}

type teller struct {
	reporter Reporter
	log      *slog.Logger
	settings Settings
}

func (r teller) announce(s Service, st *State, req balancer.Request) {
	t := &st.Told
	switch {
	case st.Pending.same(req):
		return
	case req.Desired == nil && !t.had: // it never had one
	case req.Desired == nil:
		r.reporter.Tell(s, Event{Reason: ReasonDeleting, Text: "Deleting load balancer"})
	case st.Pending.asked == nil && !t.announced:
		t.trouble = ""
		return // an earlier process reported it
	default:
		r.reporter.Tell(s, Event{Reason: ReasonEnsuring, Text: "Ensuring load balancer"})
	}
	t.announced, t.trouble = true, ""
}

func (r teller) complain(s Service, t *Told, condition Condition, text string, err error) {
	t.last, t.trouble = complaint(text, err), condition
	r.reporter.Tell(s, Event{Reason: ReasonSyncFailed, Warning: true, Text: "Error syncing load balancer: " + text, Err: err})
}

// complainOnce warns about an error that persists until the Service changes.
func (r teller) complainOnce(s Service, t *Told, condition Condition, text string, err error) {
	if !words.Same(t.last, complaint(text, err)) {
		r.complain(s, t, condition, text, err)
	}
}

func (r teller) deferred(s Service, t *Told, err error) {
	if t.trouble != Deferred {
		r.reporter.Tell(s, Event{Reason: ReasonDeferred, Warning: true, Text: "Deferred: ", Err: err})
	}
	t.trouble, t.last = Deferred, complaint("", err)
}

func complaint(text string, err error) string {
	if err != nil {
		text = words.Requested(text+err.Error(), err, words.MaxMessage-100) // the event prepends its own text
	}
	return text
}

// desired reports annotations and restrictions without effect, each once. If the latter are required, the
// rejection reports them.
func (r teller) desired(s Service, t *Told, d Desired) {
	if len(d.Unknown) > 0 && !slices.Equal(d.Unknown, t.unknown) {
		r.reporter.Tell(s, Event{Reason: ReasonUnknownAnnotation, Warning: true,
			Text: "misspelt, or not supported, and without effect: " + strings.Join(d.Unknown, ", ")})
	}
	if d.Unenforced != "" && d.Unenforced != t.unenforced && !r.settings.RequireEffectiveRestrictions {
		r.reporter.Tell(s, Event{Reason: ReasonNoEffect, Warning: true, Text: d.Unenforced})
	}
	flaws := flawsOf(d.Flaws)
	if flaws != "" && flaws != t.flaws {
		r.reporter.Tell(s, Event{Reason: ReasonPartial, Warning: true, Text: flaws})
	}
	if d.Proxied != "" && d.Proxied != t.proxied {
		r.reporter.Tell(s, Event{Reason: ReasonProbesProxied, Warning: true, Text: fmt.Sprintf(
			"Service %s on the same load balancer has a Private Link Service with the PROXY protocol. All health probes of the load balancer then begin with its header, "+
				"HTTP probes fail, and no node takes flows of this Service. Have one of the two on another load balancer (%s), or probe node ports by TCP: annotations port_<p>_health-probe_protocol \"tcp\" and port_<p>_health-probe_port \"<p>\"",
			d.Proxied, service.Configurations)})
	}
	t.unknown, t.unenforced, t.flaws, t.proxied = d.Unknown, d.Unenforced, flaws, d.Proxied
}

func (r teller) keptPools(s Service, t *Told, retained []plan.Kept) {
	reported := map[string]bool{}
	for _, k := range retained {
		text := k.String()
		if reported[text] = true; !t.left[text] {
			r.reporter.Tell(s, Event{Reason: ReasonPoolKept, Warning: true, Text: text})
		}
	}
	t.left = reported
}

func (r teller) unusedIPs(s Service, t *Told, unused []publicip.Unused) {
	reported := map[string]bool{}
	for _, ip := range unused {
		text := ip.String()
		if reported[text] = true; !t.unusedIPs[text] {
			r.reporter.Tell(s, Event{Reason: ReasonIPUnused, Warning: true, Text: text})
		}
	}
	t.unusedIPs = reported
}

// emptying reports pools with remaining network interfaces, each once: a changed count is not reported.
func (r teller) emptying(s Service, t *Told, pools []plan.Emptying) {
	reported := map[lb.PoolKey]bool{}
	for _, e := range pools {
		if reported[e.Pool.Key()] = true; !t.emptying[e.Pool.Key()] {
			r.reporter.Tell(s, Event{Reason: ReasonPoolEmptying, Text: e.String()})
		}
	}
	t.emptying = reported
}

func (r teller) filling(s Service, t *Told, pools []lb.PoolID) {
	reported := map[lb.PoolKey]bool{}
	for _, p := range pools {
		if reported[p.Key()] = true; !t.filling[p.Key()] {
			r.reporter.Tell(s, Event{Reason: ReasonPoolFilling, Text: fmt.Sprintf(
				"flows stay where they are until backend pool %s of load balancer %s holds its members; its BackendPool says what keeps it", p.Name, p.LoadBalancer.Name)})
		}
	}
	t.filling = reported
}

func (r teller) ensured(s Service, t *Told, res balancer.Result) {
	if res.Changed || t.announced || t.last != "" {
		r.reporter.Tell(s, Event{Reason: ReasonEnsured, Text: "Ensured load balancer"})
	}
	if res.Note != "" && res.Note != t.note {
		r.reporter.Tell(s, Event{Reason: ReasonNotGuarded, Warning: true, Text: res.Note})
	}
	t.reached(res)
}

func (t *Told) reached(res balancer.Result) {
	t.last, t.note, t.announced, t.had, t.filling = "", res.Note, false, true, nil
	t.trouble, t.warned = "", ""
}

func (r teller) deleted(s Service, t *Told) {
	if t.had {
		r.reporter.Tell(s, Event{Reason: ReasonDeleted, Text: "Deleted load balancer"})
	}
	t.last, t.trouble, t.warned, t.announced, t.had, t.emptying = "", "", "", true, false, nil
}

// whyKept returns why a Service of another class retains its resources, with the remedy; empty if it does not.
func (o Settings) whyKept(s Service) string {
	if !s.Kept(o.Class, s.Record.Class) {
		return ""
	}
	return fmt.Sprintf("the class is %q, and --load-balancer-class is %q: what Weir has made stays, endpoints are followed, and nothing else is changed. "+
		"Set the flag back to have it served; delete the Service, or change its type, to give up what it has", s.class(), o.Class)
}

func (r teller) kept(ctx context.Context, s Service, t *Told, reason string) {
	if t.trouble != Kept {
		r.reporter.Tell(s, Event{Reason: ReasonKept, Warning: true, Text: "Kept: " + reason})
		r.log.WarnContext(ctx, "a Service of another class keeps what Weir made for it", "service", s.Name,
			"class", s.class(), "served", r.settings.Class)
	}
	t.trouble, t.last = Kept, reason
}

func (r teller) warn(ctx context.Context, t *Told, what, name string, err error) {
	log := r.log.WarnContext
	if words.Same(t.warned, err.Error()) {
		log = r.log.DebugContext
	}
	t.warned = err.Error()
	log(ctx, what, "service", name, "err", err)
}

func (r teller) held(ctx context.Context, s Service, st *State, losing, all int) {
	if st.Told.trouble == Held {
		return
	}
	texts := make([]string, len(st.Removal.losing))
	for i, a := range st.Removal.losing {
		texts[i] = a.String()
	}
	what := strings.Join(texts, ", ")
	st.Told.trouble, st.Told.last = Held, what
	r.log.WarnContext(ctx, "addresses are not taken away before a person says so: annotate the Service with "+AllowRemovalAnnotation+"=true, or start with --allow-removal",
		"service", s.Name, "addresses", what, "losing", losing, "of", all)
	if !st.Placement.absent {
		r.reporter.Tell(s, Event{Reason: ReasonRemovalHeld, Warning: true, Text: fmt.Sprintf(
			"It would lose %s, with other Services that would lose theirs: %d of %d, and nobody has asked for it. Nothing more of it is changed until its annotation %s is \"true\", the controller is started with --allow-removal, or what takes them away is mended",
			what, losing, all, AllowRemovalAnnotation)})
	}
}

// Condition is the state of a Service's load balancer, for the metric.
type Condition string

// Conditions.
const (
	Ready     Condition = "ready"     // in sync
	Waits     Condition = "waiting"   // new, or waits for Retry-After
	Refused   Condition = "refused"   // the user must fix it, or what it refers to
	Failed    Condition = "failed"    // the last try failed and is retried
	Contested Condition = "contested" // another client keeps reverting it
	Leaving   Condition = "leaving"   // its load balancer is being removed
	Kept      Condition = "kept"      // of another class; retains its resources
	Held      Condition = "held"      // it would lose addresses and waits for the user
	Deferred  Condition = "deferred"  // no write budget left in its namespace, or rejected before
)

// Conditions returns all conditions.
func Conditions() []Condition {
	return []Condition{Ready, Waits, Refused, Failed, Contested, Leaving, Kept, Held, Deferred}
}

func (st *State) condition(managed bool, now time.Time) Condition {
	switch {
	case st.Told.trouble == Refused:
		return Refused
	case st.Waiting.notBefore.After(now):
		return Waits
	case st.Told.trouble != "":
		return st.Told.trouble
	case !managed:
		return Leaving
	case st.Level.request != nil && len(st.Level.contests) > 0:
		return Contested
	case st.Level.request != nil:
		return Ready
	}
	return Waits
}
