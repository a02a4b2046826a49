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

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// EventState is what was reported about a Service.
type EventState struct {
	// isAnnounced is set until the ready event. The other flag is set once the Service had a load balancer.
	isAnnounced, hadLoadBalancer bool
	// lastWarning is the last warning; empty once the load balancer is ready. The others are its condition and the
	// lastWarning logged error.
	lastWarning, lastLogged string
	failure                 Condition
	problems                string
	isValidated             bool
	// writtenConditions are the conditions already written by this reconcile; the informer cache may not show them yet.
	// nil for none.
	writtenConditions []StatusCondition
	lastConditions    map[string]StatusCondition
	// ports are the errors of ports. flaws are those of parts that are left out.
	ports      map[service.PortRef]string
	flaws      string
	hasNoGroup bool
	// What was reported last: the note of a result, the Service with a PROXY protocol that breaks probes, and
	// annotations and restrictions without effect.
	lastNote, proxyService, unenforcedReason string
	unknown                                  []string
	// reported are the keys of the events that were recorded and still apply, by reason.
	reported map[string][]string
}

// conditionOf classifies an error: the user must fix errors that neither Azure nor the network caused.
func conditionOf(err error) Condition {
	if _, ok := errors.AsType[*armerror.Fault](err); ok {
		return ConditionFailed
	}
	return ConditionRejected
}

// resetForPlan clears earlier reports once a dry run succeeds. A blocked removal remains reported.
func (e *EventState) resetForPlan() {
	if e.lastWarning = ""; e.failure != ConditionBlocked {
		e.failure = ""
	}
}

// IsTerminal reports whether an error of Azure does not resolve by itself.
func IsTerminal(err error) bool {
	f, ok := errors.AsType[*armerror.Fault](err)
	return ok && f.Class == armerror.Terminal
}

// IsRejection reports whether the message of a deferred Service names a rejection by Azure, rather than a used-up share.
func IsRejection(message string) bool { return strings.HasPrefix(message, loadbalancer.RejectedPrefix) }

type eventRecorder struct {
	recorder EventRecorder
	log      *slog.Logger
	settings Settings
}

func (r eventRecorder) announceStart(s Service, st *State, req loadbalancer.Request) {
	t := &st.Events
	switch {
	case st.Pending.isSame(req):
		return
	case req.Desired == nil && !t.hadLoadBalancer: // it never had one
	case req.Desired == nil:
		r.recorder.RecordEvent(s, Event{Reason: ReasonDeleting, Text: "Deleting load balancer"})
	case st.Pending.request == nil && !t.isAnnounced:
		t.failure = ""
		return // an earlier process reported it
	default:
		r.recorder.RecordEvent(s, Event{Reason: ReasonEnsuring, Text: "Ensuring load balancer"})
	}
	t.isAnnounced, t.failure = true, ""
}

func (r eventRecorder) warnFailure(s Service, t *EventState, condition Condition, text string, err error) {
	t.lastWarning, t.failure = warningText(text, err), condition
	r.recorder.RecordEvent(s, Event{Reason: ReasonSyncFailed, Warning: true, Text: "Error syncing load balancer: " + text, Err: err})
}

// warnOnce warns about an error that persists until the Service changes.
func (r eventRecorder) warnOnce(s Service, t *EventState, condition Condition, text string, err error) {
	if !humanize.EqualMessages(t.lastWarning, warningText(text, err)) {
		r.warnFailure(s, t, condition, text, err)
	}
}

func (r eventRecorder) reportDeferred(s Service, t *EventState, err error) {
	if t.failure != ConditionDeferred {
		r.recorder.RecordEvent(s, Event{Reason: ReasonDeferred, Warning: true, Text: err.Error()})
	}
	t.failure, t.lastWarning = ConditionDeferred, warningText("", err)
}

func warningText(text string, err error) string {
	if err != nil {
		text = humanize.AppendRequestID(text+err.Error(), err, humanize.MaxMessage-100) // the event prepends its own text
	}
	return text
}

// reportIneffective reports annotations and restrictions without effect. If the latter are required, the rejection
// reports them.
func (r eventRecorder) reportIneffective(s Service, t *EventState, d Desired) {
	if len(d.Unknown) > 0 && !slices.Equal(d.Unknown, t.unknown) {
		r.recorder.RecordEvent(s, Event{Reason: ReasonUnknownAnnotation, Warning: true,
			Text: "misspelt, or not supported, and without effect: " + strings.Join(d.Unknown, ", ")})
	}
	if d.UnenforcedReason != "" && d.UnenforcedReason != t.unenforcedReason && !r.settings.RequireEffectiveRestrictions {
		r.recorder.RecordEvent(s, Event{Reason: ReasonNoEffect, Warning: true, Text: d.UnenforcedReason})
	}
	flaws := flawText(d.Flaws)
	if flaws != "" && flaws != t.flaws {
		r.recorder.RecordEvent(s, Event{Reason: ReasonPartial, Warning: true, Text: flaws})
	}
	if d.ProxyProtocolService != "" && d.ProxyProtocolService != t.proxyService {
		r.recorder.RecordEvent(s, Event{Reason: ReasonProbesProxied, Warning: true, Text: fmt.Sprintf(
			"%s on the same load balancer has a Private Link Service with the PROXY protocol. All health probes of the load balancer then begin with its header, "+
				"HTTP probes fail, and no node receives flows of this Service. Place one of the two on another load balancer (%s), or probe node ports by TCP: annotations port_<p>_health-probe_protocol \"tcp\" and port_<p>_health-probe_port \"<p>\"",
			service.DescribeOwner(d.ProxyProtocolService), service.Configurations)})
	}
	t.unknown, t.unenforcedReason, t.flaws, t.proxyService = d.Unknown, d.UnenforcedReason, flaws, d.ProxyProtocolService
}

// reportNew records an event for each cause with a key that is new since the last call.
func reportNew[T any](r eventRecorder, s Service, t *EventState, reason string, causes []T, key func(T) string, newEvent func(T) Event) {
	var keys []string
	for _, c := range causes {
		if keys = append(keys, key(c)); !slices.Contains(t.reported[reason], key(c)) {
			r.recorder.RecordEvent(s, newEvent(c))
		}
	}
	switch {
	case len(keys) == 0:
		delete(t.reported, reason)
	case t.reported == nil:
		t.reported = map[string][]string{reason: keys}
	default:
		t.reported[reason] = keys
	}
}

func (r eventRecorder) reportRetained(s Service, t *EventState, retained []plan.RetainedPart) {
	reportNew(r, s, t, ReasonPoolRetained, retained, plan.RetainedPart.String, func(p plan.RetainedPart) Event {
		return Event{Reason: ReasonPoolRetained, Warning: true, Text: p.String()}
	})
}

func (r eventRecorder) reportUnusedIPs(s Service, t *EventState, unused []publicip.Unused) {
	reportNew(r, s, t, ReasonIPUnused, unused, publicip.Unused.String, func(ip publicip.Unused) Event {
		return Event{Reason: ReasonIPUnused, Warning: true, Text: ip.String()}
	})
}

// reportDraining reports pools with remaining network interfaces; a changed count is not reported.
func (r eventRecorder) reportDraining(s Service, t *EventState, pools []plan.DrainingPool) {
	reportNew(r, s, t, ReasonPoolEmptying, pools, func(p plan.DrainingPool) string { return p.Pool.String() }, func(p plan.DrainingPool) Event {
		return Event{Reason: ReasonPoolEmptying, Text: p.String()}
	})
}

func (r eventRecorder) reportFilling(s Service, t *EventState, pools []lb.PoolID) {
	reportNew(r, s, t, ReasonPoolFilling, pools, lb.PoolID.String, func(p lb.PoolID) Event {
		return Event{Reason: ReasonPoolFilling, Text: fmt.Sprintf(
			"flows use the previous pool until backend pool %s of load balancer %s has its members; the status of its BackendPool has the reason", p.Name, p.LoadBalancer.Name)}
	})
}

func (r eventRecorder) reportReady(s Service, t *EventState, res loadbalancer.Result) {
	if res.Changed || t.isAnnounced || t.lastWarning != "" {
		r.recorder.RecordEvent(s, Event{Reason: ReasonEnsured, Text: "Ensured load balancer"})
	}
	if res.Message != "" && res.Message != t.lastNote {
		r.recorder.RecordEvent(s, Event{Reason: ReasonNotEnforced, Warning: true, Text: res.Message})
	}
	r.reportFilling(s, t, nil)
	t.recordReady(res)
}

func (e *EventState) recordReady(res loadbalancer.Result) {
	e.lastWarning, e.lastNote, e.isAnnounced, e.hadLoadBalancer = "", res.Message, false, true
	e.failure, e.lastLogged = "", ""
}

func (r eventRecorder) reportDeleted(s Service, t *EventState) {
	if t.hadLoadBalancer {
		r.recorder.RecordEvent(s, Event{Reason: ReasonDeleted, Text: "Deleted load balancer"})
	}
	r.reportDraining(s, t, nil)
	t.lastWarning, t.failure, t.lastLogged, t.isAnnounced, t.hadLoadBalancer = "", "", "", true, false
}

// retainReason returns why a Service of another class retains its resources, with the remedy; empty if it does not.
func (settings Settings) retainReason(s Service) string {
	if !s.IsRetained(settings.Class, s.Record.Class) {
		return ""
	}
	return fmt.Sprintf("the class is %q, and --load-balancer-class is %q: Weir's resources remain, endpoints are still synced, and nothing else is changed. "+
		"Set the flag back to have it served; delete the Service, or change its type, to give up what it has", s.className(), settings.Class)
}

func (r eventRecorder) reportOtherClass(ctx context.Context, s Service, t *EventState, reason string) {
	if t.failure != ConditionRetained {
		r.recorder.RecordEvent(s, Event{Reason: ReasonRetained, Warning: true, Text: "Kept: " + reason})
		r.log.WarnContext(ctx, "a Service of another class keeps what Weir made for it", "service", s.Name,
			"class", s.className(), "served", r.settings.Class)
	}
	t.failure, t.lastWarning = ConditionRetained, reason
}

func (r eventRecorder) logWarning(ctx context.Context, t *EventState, message, name string, err error, next time.Time) {
	log := r.log.WarnContext
	if humanize.EqualMessages(t.lastLogged, err.Error()) {
		log = r.log.DebugContext
	}
	t.lastLogged = err.Error()
	log(ctx, message, "service", name, "err", err, "nextAttempt", humanize.FormatTime(next))
}

func (r eventRecorder) reportBlocked(ctx context.Context, s Service, st *State, losing, total int) {
	if st.Events.failure == ConditionBlocked {
		return
	}
	texts := make([]string, len(st.Removal.addresses))
	for i, a := range st.Removal.addresses {
		texts[i] = a.String()
	}
	text := strings.Join(texts, ", ")
	st.Events.failure, st.Events.lastWarning = ConditionBlocked, text
	r.log.WarnContext(ctx, "addresses are removed only on request: annotate the Service with "+AllowRemovalAnnotation+"=true, or start with --allow-removal",
		"service", s.Name, "addresses", text, "losing", losing, "of", total)
	if !st.Placement.isGone {
		r.recorder.RecordEvent(s, Event{Reason: ReasonRemovalBlocked, Warning: true, Text: fmt.Sprintf(
			"It would lose %s, with other Services that would lose theirs: %d of %d, and no user has requested it. Nothing more of it is changed until its annotation %s is \"true\", the controller is started with --allow-removal, or the cause is fixed",
			text, losing, total, AllowRemovalAnnotation)})
	}
}

// Condition is the state of a Service's load balancer, for the metric.
type Condition string

// Conditions.
const (
	ConditionReady    Condition = "ready"     // in sync
	ConditionWaiting  Condition = "waiting"   // new, or waits for Retry-After
	ConditionRejected Condition = "rejected"  // the user must fix it, or what it refers to
	ConditionFailed   Condition = "failed"    // the last try failed and is retried
	ConditionConflict Condition = "contested" // another client keeps reverting it
	ConditionLeaving  Condition = "leaving"   // its load balancer is being removed
	ConditionRetained Condition = "retained"  // of another class; retains its resources
	ConditionBlocked  Condition = "blocked"   // it would lose addresses and waits for the user
	ConditionDeferred Condition = "deferred"  // no write budget left in its namespace, or rejected before
)

// AllConditions returns all conditions.
func AllConditions() []Condition {
	return []Condition{ConditionReady, ConditionWaiting, ConditionRejected, ConditionFailed, ConditionConflict, ConditionLeaving, ConditionRetained, ConditionBlocked, ConditionDeferred}
}

func (st *State) currentCondition(managed bool, now time.Time) Condition {
	switch {
	case st.Events.failure == ConditionRejected:
		return ConditionRejected
	case st.Waiting.notBefore.After(now):
		return ConditionWaiting
	case st.Events.failure != "":
		return st.Events.failure
	case !managed:
		return ConditionLeaving
	case st.Sync.request != nil && len(st.Sync.conflicts) > 0:
		return ConditionConflict
	case st.Sync.request != nil:
		return ConditionReady
	}
	return ConditionWaiting
}
