// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// maxPendingAge is the time after which an object in progress counts as a problem: longer than any interval, and
// longer than a write to Azure takes.
const maxPendingAge = 10 * time.Minute

// Report lists problems and objects in progress.
type Report struct {
	At time.Time `json:"at"`
	// InSync is true if there is no problem; objects may be in progress.
	InSync bool   `json:"inSync"`
	Leader Leader `json:"leader"`
	// Namespace is the one that was read; empty means all.
	Namespace string `json:"namespace,omitempty"`
	// Class is the spec.loadBalancerClass that Weir serves, by default if it is not seen; empty means Services without one.
	Class string `json:"loadBalancerClass"`
	// Pools and Services count all BackendPools and all Services that Weir serves or that no controller serves.
	Pools    Count `json:"backendPools"`
	Services Count `json:"services"`
	// Gateways counts the Gateways of Weir's classes. GatewaysUnseen is set if the caller may not list them.
	Gateways       Count `json:"gateways"`
	GatewaysUnseen bool  `json:"gatewaysUnseen,omitempty"`
	// Provisions counts all Provisions.
	Provisions Count `json:"provisions"`
	// Causes are the problems by cause: those with a fix first, then those with most objects.
	Causes []Cause `json:"causes"`
	// Waiting are objects in progress that need no action, oldest first.
	Waiting []Problem `json:"waiting,omitempty"`
	// Paused are paused BackendPools, earliest end first.
	Paused []Paused `json:"paused,omitempty"`
	// Notes are hints about objects that are in sync.
	Notes []Cause `json:"notes,omitempty"`
	// Health is nil unless it was read.
	Health *Health `json:"health,omitempty"`

	isColored bool // text only
}

// Leader identifies the leader. Known is false if the caller may not read Leases.
type Leader struct {
	Known  bool   `json:"known"`
	Holder string `json:"holder,omitempty"`
	// Last is the previous holder; Renewed is the last renewal.
	Last    string    `json:"last,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	// Namespace of the Lease; empty if there is none.
	Namespace string `json:"namespace,omitempty"`
	// Version and Class are those of the leader, or of the previous one.
	Version string  `json:"version,omitempty"`
	Class   *string `json:"loadBalancerClass,omitempty"`
	// Rivals are the leaders by Leases of other namespaces.
	Rivals []Leader `json:"rivals,omitempty"`
}

// hasNoHolder reports whether the Lease exists without a holder. Weir may run without a Lease.
func (l Leader) hasNoHolder() bool { return l.Known && l.Holder == "" && l.Namespace != "" }

// noLeaderMessage describes since when there is no leader, and the effect.
func (l Leader) noLeaderMessage() string {
	text := "no process of Weir leads"
	if !l.Renewed.IsZero() {
		text += " since " + humanize.FormatTime(l.Renewed)
	}
	if l.Last != "" {
		text += "; before, " + l.Last + " did"
	}
	return text + ": nothing is written for any Service, and Azure keeps what it has"
}

// Count counts objects.
type Count struct {
	All      int `json:"all"`
	UnderWay int `json:"underWay"`
	Wrong    int `json:"wrong"`
}

// Cause groups problems with the same cause.
type Cause struct {
	// Name is Azure's error code, else the state.
	Name string `json:"name"`
	Fix  string `json:"do,omitempty"`
	// Of are the objects, oldest problem first.
	Objects []Problem `json:"of"`
}

// Problem is an object with a problem, or in progress.
type Problem struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// Since is the start of the state. If only a lower bound is known, NotBefore has it.
	Since     time.Time `json:"since,omitzero"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	Why       string    `json:"why,omitempty"`
	// Service is the Service of the pool, if any.
	Service string `json:"service,omitempty"`
	// SharedBy is the load balancer of a pool that Services share.
	SharedBy string `json:"sharedBy,omitempty"`
	cause    string
	fix      string // in place of the remedy for the cause
}

// NewReport finds the problems in a snapshot.
func NewReport(s Snapshot) Report {
	r := Report{At: s.At, Leader: s.Leader, Namespace: s.Namespace, Causes: []Cause{}, Health: s.Health}
	r.Class, _ = ServedClass(s.Leader, s.Installation)
	wrong, hints := s.runningProblems(), []Problem(nil)
	ofProvisioner, notedOfProvisioner := s.Provisioner.checkProvisioner()
	wrong, hints = append(wrong, ofProvisioner...), append(hints, notedOfProvisioner...)
	for i := range s.Pools {
		found, waits := checkPool(&s.Pools[i], s.At)
		if len(found) == 0 && syncedCondition(&s.Pools[i]).Reason == v1alpha1.ReasonPaused {
			r.Paused = append(r.Paused, newPaused(&s.Pools[i]))
		}
		found = append(found, s.downProblems(&s.Pools[i])...)
		r.Pools.addObject(found, len(waits) > 0)
		if len(found) == 0 {
			hints = append(hints, PoolHints(&s.Pools[i])...)
		}
		wrong, r.Waiting = append(wrong, found...), append(r.Waiting, waits...)
	}
	r.Provisions.All = s.Provisioner.All
	ofProvisions := s.Provisioner.provisionProblems()
	r.Provisions.Wrong, wrong = len(ofProvisions), append(wrong, ofProvisions...)
	for i := range s.Services {
		found, waits, counts := s.checkService(&s.Services[i])
		if !counts {
			continue
		}
		r.Services.addObject(found, len(waits) > 0)
		wrong, hints = append(wrong, found...), append(hints, serviceHints(&s.Services[i])...)
		r.Waiting = append(r.Waiting, waits...)
	}
	ofGateways, notedOfGateways := r.addGateways(s)
	wrong, hints = append(wrong, ofGateways...), append(hints, notedOfGateways...)
	sortByEnd(r.Paused)
	slices.SortFunc(r.Waiting, compareAge)
	r.Notes = groupByCause(hints)
	r.Causes, r.InSync = groupByCause(wrong), len(wrong) == 0
	return r
}

func (c *Count) addObject(found []Problem, underWay bool) {
	c.All++
	switch {
	case len(found) > 0:
		c.Wrong++
	case underWay:
		c.UnderWay++
	}
}

func groupByCause(wrong []Problem) []Cause {
	of := map[string][]Problem{}
	for _, w := range wrong {
		of[w.cause] = append(of[w.cause], w)
	}
	causes := make([]Cause, 0, len(of))
	for name, problems := range of {
		slices.SortFunc(problems, compareAge)
		c := Cause{Name: name, Fix: cmp.Or(problems[0].fix, RemedyFor(name), remedyForRejection(name, problems[0].Why)), Objects: problems}
		switch isOther := func(w Problem) bool { return w.Kind != problems[0].Kind }; {
		case len(problems) == 1:
			c.Fix = RemedyOf(name, problems[0])
		case !slices.ContainsFunc(problems, isOther):
			c.Fix = strings.ReplaceAll(c.Fix, "KIND", strings.ToLower(problems[0].Kind))
		}
		causes = append(causes, c)
	}
	slices.SortFunc(causes, func(a, b Cause) int {
		first := func(c Cause) int {
			if c.Name == NoLeader || c.Name == TwoLeaders { // nothing else recovers first
				return 0
			}
			return 1
		}
		served := func(c Cause) int { // traffic arrives in spite of it
			if slices.Contains(problemReasons, c.Name) {
				return 1
			}
			return 0
		}
		return cmp.Or(first(a)-first(b), hasFix(a)-hasFix(b), served(a)-served(b), len(b.Objects)-len(a.Objects), cmp.Compare(a.Name, b.Name))
	})
	return causes
}

// isRetryPending reports whether a failed pool is in progress: its retry follows, and a user need do nothing, such as after a
// 429. Like all else in progress it is a problem after maxPendingAge, and at once if the retry follows only then.
func isRetryPending(p *v1alpha1.BackendPool, w Problem, now time.Time) bool {
	if at := p.Status.NextEligibleAt; at != nil && at.After(now) {
		now = at.Time
	}
	return strings.HasPrefix(RemedyFor(w.cause), "nothing") && now.Sub(w.Since) < maxPendingAge
}

// IsInProgress reports whether a BackendPool waits, and needs no action.
func IsInProgress(p *v1alpha1.BackendPool, now time.Time) bool {
	_, waits := checkPool(p, now)
	return len(waits) > 0
}

// hasFix returns 0 for a cause that a user can fix, and 1 for one that resolves by itself.
func hasFix(c Cause) int {
	if c.Fix == "" || strings.HasPrefix(c.Fix, "nothing") {
		return 1
	}
	return 0
}

func compareAge(a, b Problem) int {
	return cmp.Or(a.start().Compare(b.start()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// start returns the start of the state, or its lower bound.
func (p Problem) start() time.Time {
	if p.Since.IsZero() {
		return p.NotBefore
	}
	return p.Since
}

// isPending reports whether a pool is in progress and needs no action.
func isPending(p *v1alpha1.BackendPool) bool {
	synced := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
	return synced == nil ||
		slices.Contains([]string{v1alpha1.ReasonPending, v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonLeaving}, synced.Reason)
}

// syncedCondition returns the Synced condition, or a placeholder before there is one.
func syncedCondition(p *v1alpha1.BackendPool) metav1.Condition {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		return *c
	}
	return metav1.Condition{Reason: v1alpha1.ReasonPending, Message: "Weir has not reported on it yet", LastTransitionTime: p.CreationTimestamp}
}

func checkPool(p *v1alpha1.BackendPool, now time.Time) (found, waits []Problem) {
	w := Problem{Kind: "BackendPool", Namespace: p.Namespace, Name: p.Name}
	if p.Spec.ServiceRef != nil {
		w.Service = p.Spec.ServiceRef.Name
	}
	if p.Status.MadeFor == v1alpha1.MadeForNodes {
		w.SharedBy = p.Spec.LoadBalancer.Name
	}
	synced := syncedCondition(p)
	w.State, w.Since, w.Why = synced.Reason, synced.LastTransitionTime.Time, synced.Message
	w.cause = w.State
	switch {
	case w.State == v1alpha1.ReasonInSync:
		if w.cause, w.Since, w.Why = InSyncProblem(p); w.cause == "" {
			return nil, nil
		}
		if w.State = w.cause; w.cause != v1alpha1.ConditionContested {
			w.Since, w.NotBefore = time.Time{}, w.Since // it may have been in sync with all nodes before
		}
	case isPending(p) && hasFailed(p) && synced.Status != metav1.ConditionTrue: // a later change waits, and the last write has failed
		last := p.Status.LastOutcome
		w.State, w.Since, w.Why = v1alpha1.ReasonFailed, last.Since.Time, "the last attempt failed: "+last.Code+"; now: "+w.Why
		if w.cause = failureCause(last.Code, w.Why); isRetryPending(p, w, now) {
			w.State = synced.Reason
			return nil, []Problem{w}
		}
	case isPending(p) && now.Sub(w.Since) < maxPendingAge:
		return nil, []Problem{w}
	case w.State == v1alpha1.ReasonPaused:
		return checkOverdue(p, w, now), nil
	case w.State == v1alpha1.ReasonRetrying || w.State == v1alpha1.ReasonFailed:
		if last := p.Status.LastOutcome; last != nil && last.Code != "" {
			w.cause, w.Since = failureCause(last.Code, w.Why), last.Since.Time
		}
		if w.State == v1alpha1.ReasonRetrying && isRetryPending(p, w, now) {
			return nil, []Problem{w}
		}
	case !isPending(p): // it may have been out of sync for another reason before
		w.Since, w.NotBefore = time.Time{}, w.Since
	}
	return []Problem{w}, nil
}

// hasFailed reports whether the last attempt of a pool failed.
func hasFailed(p *v1alpha1.BackendPool) bool {
	return p.Status.LastOutcome != nil && p.Status.LastOutcome.Code != ""
}

func failureCause(code, reason string) string {
	if RemedyFor(code) == "" {
		return causeOf(code, reason)
	}
	return code
}

// Parts of the message of an in-sync pool: nodes left out despite being needed, nodes kept out by labels, and
// no nodes at all. Nodes kept out are a problem only if no others remain.
const (
	leftOutPart = "; left out: "
	keptOutPart = "; kept out: "
	noNodesPart = "in sync with no nodes"
	lastUpPart  = "so these remain Up although they drain"
)

// HasLastUp reports whether an in-sync pool keeps members up that should drain, because no other is up.
func HasLastUp(p *v1alpha1.BackendPool) bool {
	cond := syncedCondition(p)
	return cond.Status == metav1.ConditionTrue && strings.Contains(cond.Message, lastUpPart)
}

// Causes for in-sync pools that lack some or all nodes.
const (
	NodesLeftOut = "NodesLeftOut"
	NoNodeLeft   = "NoNodeLeft"
	NoNodes      = "NoNodes"
)

// InSyncProblem returns the problem of an in-sync pool; cause is empty if there is none.
func InSyncProblem(p *v1alpha1.BackendPool) (cause string, since time.Time, reason string) {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionContested); c != nil && c.Status == metav1.ConditionTrue {
		return c.Type, c.LastTransitionTime.Time, c.Message
	}
	cond := syncedCondition(p)
	without, misses := strings.HasPrefix(cond.Message, noNodesPart), strings.Contains(cond.Message, leftOutPart)
	switch {
	case without && (misses || strings.Contains(cond.Message, keptOutPart)):
		cause = NoNodeLeft
	case misses:
		cause = NodesLeftOut
	default:
		return "", time.Time{}, ""
	}
	return cause, cond.LastTransitionTime.Time, cond.Message
}

// isManaged reports whether Weir manages the Service, did so before, or has set a condition on it.
func isManaged(s *corev1.Service) bool {
	return slices.Contains(s.Finalizers, metadata.ServiceFinalizer) || slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Type, "weir.dev/")
	})
}

// Reasons that resolve by themselves, and reasons that another condition reports.
var (
	transientReasons = []string{servicelb.ConditionReasonUpdating, servicelb.ConditionReasonRetryAfter, servicelb.ConditionReasonPoolFilling, servicelb.ConditionReasonLeaving, servicelb.ConditionReasonMigrating}
	duplicateReasons = []string{servicelb.ConditionReasonNotAccepted, servicelb.ConditionReasonConflict}
)

// problemReasons are reasons of True conditions that are problems: access that should be restricted, or missing parts.
var problemReasons = []string{servicelb.ConditionReasonOpen, servicelb.ConditionReasonNotEnforced, servicelb.ConditionReasonPartial}

// isTransient reports whether a condition of a Service resolves by itself.
func isTransient(c metav1.Condition) bool {
	if c.Reason == servicelb.ConditionReasonDeferred {
		return !servicelb.IsRejection(c.Message)
	}
	return slices.Contains(transientReasons, c.Reason)
}

// PoolHints returns a note on a pool of a user that is in sync and empty. Services of Weir have a condition for that.
func PoolHints(p *v1alpha1.BackendPool) []Problem {
	cond := syncedCondition(p)
	if p.Status.MadeFor != "" || cond.Reason != v1alpha1.ReasonInSync || !strings.HasPrefix(cond.Message, noNodesPart) {
		return nil
	}
	w := Problem{Kind: "BackendPool", Namespace: p.Namespace, Name: p.Name, State: servicelb.ConditionReasonNoEndpoints, Why: "the pool is in sync and empty: no endpoint of its Service is ready"}
	if w.cause = w.State; p.Spec.ServiceRef == nil {
		w.State, w.cause, w.Why = NoNodes, NoNodes, "the pool is in sync and empty: spec.nodes.selector matches no node"
	} else {
		w.Service = p.Spec.ServiceRef.Name
	}
	return []Problem{w}
}

func serviceHints(s *corev1.Service) (hints []Problem) {
	for _, c := range s.Status.Conditions {
		if strings.HasPrefix(c.Type, "weir.dev/") && c.Reason == servicelb.ConditionReasonNoEndpoints {
			hints = append(hints, Problem{Kind: "Service", Namespace: s.Namespace, Name: s.Name, State: c.Reason, cause: c.Reason, Why: c.Message})
		}
	}
	if isManaged(s) {
		hints = append(hints, annotationHints("Service", s.ObjectMeta)...)
	}
	return hints
}

func annotationHints(kind string, of metav1.ObjectMeta) []Problem {
	unknown := (service.Service{Annotations: of.Annotations}).UnknownAnnotations()
	if len(unknown) == 0 {
		return nil
	}
	return []Problem{{
		Kind: kind, Namespace: of.Namespace, Name: of.Name, State: servicelb.ReasonUnknownAnnotation, cause: servicelb.ReasonUnknownAnnotation,
		Why: "without effect: " + humanize.FormatList(unknown, 5),
	}}
}

// checkService returns the problems of a Service. counts is false if another controller is responsible for it.
func (s Snapshot) checkService(svc *corev1.Service) (found, waits []Problem, counts bool) {
	if p, unserved := s.UnservedProblem(svc); unserved {
		return []Problem{p}, nil, true
	}
	if !isManaged(svc) {
		return nil, nil, false
	}
	object := Problem{Kind: "Service", Namespace: svc.Namespace, Name: svc.Name}
	if svc.DeletionTimestamp != nil {
		var failure metav1.Condition
		if c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed); c != nil && c.Status == metav1.ConditionFalse {
			failure = *c
		}
		found, waits = checkRemoval(object, &svc.ObjectMeta, failure, s.At)
		return found, waits, true
	}
	found, waits = checkConditions(object, svc.Status.Conditions, s.At)
	if len(found) > 0 || len(waits) > 0 || len(svc.Status.LoadBalancer.Ingress) > 0 {
		return found, waits, true
	}
	object.State, object.cause, object.Since, object.Why = v1alpha1.ReasonPending, NoAddress, svc.CreationTimestamp.Time, "it has no address yet"
	if s.At.Sub(object.Since) >= maxPendingAge {
		return []Problem{object}, nil, true
	}
	return nil, []Problem{object}, true
}

// checkConditions returns the problems that Weir's own conditions of a Service or Gateway report, and what it waits for.
func checkConditions(object Problem, conditions []metav1.Condition, now time.Time) (found, waits []Problem) {
	for _, c := range conditions {
		name, isWeirs := strings.CutPrefix(c.Type, "weir.dev/")
		bad, since, notBefore := c.Status == metav1.ConditionFalse, c.LastTransitionTime.Time, time.Time{}
		switch {
		case c.Type == metadata.ConditionConflict:
			bad = c.Status == metav1.ConditionTrue
		case slices.Contains(problemReasons, c.Reason): // the condition may have been True for another reason before
			bad, since, notBefore = true, time.Time{}, since
		}
		w := object
		w.State, w.cause, w.Since, w.NotBefore, w.Why = c.Reason, c.Reason, since, notBefore, c.Message
		if name == "Programmed" && bad && c.Reason != servicelb.ConditionReasonUpdating { // it may have been False for another reason before
			w.Since, w.NotBefore = time.Time{}, since
		}
		switch {
		case !isWeirs || !bad || slices.Contains(duplicateReasons, c.Reason):
		case isTransient(c) && now.Sub(c.LastTransitionTime.Time) < maxPendingAge:
			waits = append(waits, w)
		default:
			switch c.Reason {
			case servicelb.ConditionReasonInvalid: // other fix than for a BackendPool
				w.cause = servicelb.ConditionReasonNotAccepted
			case servicelb.ConditionReasonFailed, servicelb.ConditionReasonRejected:
				w.cause = causeOf(c.Reason, c.Message)
			}
			found = append(found, w)
		}
	}
	return found, waits
}
