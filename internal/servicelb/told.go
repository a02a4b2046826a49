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

// Told is what people were told of a Service.
type Told struct {
	// announced is true while people wait for the word that the load balancer is there, and had
	// once the Service had one.
	announced, had bool
	// last is the last complaint; empty once the load balancer is there. trouble says which
	// condition that is, and warned is the error that the log said last.
	last, warned string
	trouble      Condition
	// wrong is what is wrong with the Service itself, once it was judged; see judges.
	wrong  string
	judged bool
	// concluded are the conditions that this look has written already, which the informer's copy need not show
	// yet; nil if it has written none.
	concluded []Verdict
	// wrote are the conditions that this process has written last, by type.
	wrote map[string]Verdict
	// ports say what is wrong with which of its ports. flaws are what is wrong with parts without which it is served.
	ports map[service.PortRef]string
	flaws string
	// proxied is the Service that has the probes of this one fail.
	proxied string
	// filling are the pools of which it was told that rules wait for them.
	filling map[lb.PoolKey]bool
	// links are the warnings about a Private Link Service that were told last.
	links map[string]bool
	// note is the last note of a result, left what was told of pools that stay for what others
	// have put there, unusedIPs what was told of public IPs that it does not use, emptying are the pools of which it was told that interfaces have to leave,
	// unknown the annotations without effect, and unenforced the restrictions without.
	note       string
	left       map[string]bool
	unusedIPs  map[string]bool
	emptying   map[lb.PoolKey]bool
	unknown    []string
	unenforced string
}

// troubleOf says whose an error is: what Azure, or the way there, had no part in is for people
// to mend.
func troubleOf(err error) Condition {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return Failed
	}
	return Refused
}

// planned ends what people were told of a Service of which a plan can be made now. That addresses are
// held back stays true.
func (t *Told) planned() {
	if t.last = ""; t.trouble != Held {
		t.trouble = ""
	}
}

// teller tells people, each thing once.
type teller struct {
	reporter Reporter
	log      *slog.Logger
	settings Settings
}

// announce says that work begins, if the Service wants something new.
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
		return // an earlier process has said so
	default:
		r.reporter.Tell(s, Event{Reason: ReasonEnsuring, Text: "Ensuring load balancer"})
	}
	t.announced, t.trouble = true, ""
}

// complain puts a failure of Azure, or of the plan, on a Service: a text, and the error that
// follows it.
func (r teller) complain(s Service, t *Told, is Condition, text string, err error) {
	t.last, t.trouble = complaint(text, err), is
	r.reporter.Tell(s, Event{Reason: ReasonSyncFailed, Warning: true, Text: "Error syncing load balancer: " + text, Err: err})
}

// complainOnce is complain for what stays the same until somebody changes the Service.
func (r teller) complainOnce(s Service, t *Told, is Condition, text string, err error) {
	if !words.Same(t.last, complaint(text, err)) {
		r.complain(s, t, is, text, err)
	}
}

// deferred reports that a Service waits for its next write, in one event until that is over.
func (r teller) deferred(s Service, t *Told, err error) {
	if t.trouble != Deferred {
		r.reporter.Tell(s, Event{Reason: ReasonDeferred, Warning: true, Text: "Deferred: ", Err: err})
	}
	t.trouble, t.last = Deferred, complaint("", err)
}

func complaint(text string, err error) string {
	if err != nil {
		text = words.Requested(text+err.Error(), err, words.MaxMessage-100) // others put theirs before it
	}
	return text
}

// desired tells of annotations and of restrictions that have no effect, once of the same. Where
// Services without effective restrictions are refused, the refusal says it.
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

// keptPools tells of the pools that a Service leaves to others, once of the same.
func (r teller) keptPools(s Service, t *Told, kept []plan.Kept) {
	told := map[string]bool{}
	for _, k := range kept {
		text := k.String()
		if told[text] = true; !t.left[text] {
			r.reporter.Tell(s, Event{Reason: ReasonPoolKept, Warning: true, Text: text})
		}
	}
	t.left = told
}

// unusedIPs tells of the public IPs that were made for a Service and that it does not use, once of the same.
func (r teller) unusedIPs(s Service, t *Told, unused []publicip.Unused) {
	told := map[string]bool{}
	for _, ip := range unused {
		text := ip.String()
		if told[text] = true; !t.unusedIPs[text] {
			r.reporter.Tell(s, Event{Reason: ReasonIPUnused, Warning: true, Text: text})
		}
	}
	t.unusedIPs = told
}

// emptying tells which pools keep a load balancer until their network interfaces have left, once of
// each: how many they are yet is no news.
func (r teller) emptying(s Service, t *Told, pools []plan.Emptying) {
	told := map[lb.PoolKey]bool{}
	for _, e := range pools {
		if told[e.Pool.Key()] = true; !t.emptying[e.Pool.Key()] {
			r.reporter.Tell(s, Event{Reason: ReasonPoolEmptying, Text: e.String()})
		}
	}
	t.emptying = told
}

// filling tells for which pools rules stay where they are, once of each.
func (r teller) filling(s Service, t *Told, pools []lb.PoolID) {
	told := map[lb.PoolKey]bool{}
	for _, p := range pools {
		if told[p.Key()] = true; !t.filling[p.Key()] {
			r.reporter.Tell(s, Event{Reason: ReasonPoolFilling, Text: fmt.Sprintf(
				"flows stay where they are until backend pool %s of load balancer %s holds its members; its BackendPool says what keeps it", p.Name, p.LoadBalancer.Name)})
		}
	}
	t.filling = told
}

// ensured says that the load balancer is there, if that is news.
func (r teller) ensured(s Service, t *Told, res balancer.Result) {
	if res.Changed || t.announced || t.last != "" {
		r.reporter.Tell(s, Event{Reason: ReasonEnsured, Text: "Ensured load balancer"})
	}
	if res.Note != "" && res.Note != t.note {
		r.reporter.Tell(s, Event{Reason: ReasonNotGuarded, Warning: true, Text: res.Note})
	}
	t.reached(res)
}

// reached takes in that people were told that the load balancer is there.
func (t *Told) reached(res balancer.Result) {
	t.last, t.note, t.announced, t.had, t.filling = "", res.Note, false, true, nil
	t.trouble, t.warned = "", ""
}

// deleted says that nothing is left of the load balancer, if there was one.
func (r teller) deleted(s Service, t *Told) {
	if t.had {
		r.reporter.Tell(s, Event{Reason: ReasonDeleted, Text: "Deleted load balancer"})
	}
	t.last, t.trouble, t.warned, t.announced, t.had, t.emptying = "", "", "", true, false, nil
}

// whyKept says why a Service of another class keeps what it has, and what people can do; empty if it
// does not.
func (o Settings) whyKept(s Service) string {
	if !s.Kept(o.Class, s.Record.Class) {
		return ""
	}
	return fmt.Sprintf("the class is %q, and --load-balancer-class is %q: what Weir has made stays, endpoints are followed, and nothing else is changed. "+
		"Set the flag back to have it served; delete the Service, or change its type, to give up what it has", s.class(), o.Class)
}

// kept says once that a Service of another class keeps what it has.
func (r teller) kept(ctx context.Context, s Service, t *Told, why string) {
	if t.trouble != Kept {
		r.reporter.Tell(s, Event{Reason: ReasonKept, Warning: true, Text: "Kept: " + why})
		r.log.WarnContext(ctx, "a Service of another class keeps what Weir made for it", "service", s.Name,
			"class", s.class(), "served", r.settings.Class)
	}
	t.trouble, t.last = Kept, why
}

// warn logs what keeps a Service from its load balancer. What the log said last of it is
// repeated for those alone who look closely.
func (r teller) warn(ctx context.Context, t *Told, what, name string, err error) {
	log := r.log.WarnContext
	if words.Same(t.warned, err.Error()) {
		log = r.log.DebugContext
	}
	t.warned = err.Error()
	log(ctx, what, "service", name, "err", err)
}

// held says once that a person is waited for.
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

// Condition is how far a Service is with its load balancer.
type Condition string

// The conditions.
const (
	Ready     Condition = "ready"     // it has what it wants
	Waits     Condition = "waiting"   // it is new, or waits for what Azure asked for
	Refused   Condition = "refused"   // somebody has to mend it, or what it names
	Failed    Condition = "failed"    // the last try failed, and another follows
	Contested Condition = "contested" // somebody else keeps undoing what it wants
	Leaving   Condition = "leaving"   // it gives its load balancer up
	Kept      Condition = "kept"      // it is of another class, and keeps what it has
	Held      Condition = "held"      // it would lose addresses, and waits for a person
	Deferred  Condition = "deferred"  // its namespace has used up its share of writes, or Azure rejected it before
)

// Conditions are all of them.
func Conditions() []Condition {
	return []Condition{Ready, Waits, Refused, Failed, Contested, Leaving, Kept, Held, Deferred}
}

// condition is that of a Service that was looked at.
func (st *State) condition(ours bool, now time.Time) Condition {
	switch {
	case st.Told.trouble == Refused:
		return Refused
	case st.Waiting.notBefore.After(now):
		return Waits
	case st.Told.trouble != "":
		return st.Told.trouble
	case !ours:
		return Leaving
	case st.Level.request != nil && len(st.Level.contests) > 0:
		return Contested
	case st.Level.request != nil:
		return Ready
	}
	return Waits
}
