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
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/internal/words"
)

// tooLong is how long something may be on its way before it counts as wrong: longer than any interval,
// and than what Azure takes for a write.
const tooLong = 10 * time.Minute

// Report is what is wrong, and what is not.
type Report struct {
	At time.Time `json:"at"`
	// Level is true where nothing is wrong; some may be on its way.
	Level  bool   `json:"level"`
	Leader Leader `json:"leader"`
	// Pools and Services are all there are; Services are those that are Weir's.
	Pools    Count `json:"backendPools"`
	Services Count `json:"services"`
	// Causes are what is wrong by what stands behind it, the one with the most first.
	Causes []Cause `json:"causes"`
	// Waiting are those that need nobody, the one that has been on its way for longest first.
	Waiting []Wrong `json:"waiting,omitempty"`
	// Paused are BackendPools that somebody has paused, those that go on first first.
	Paused []Paused `json:"paused,omitempty"`
	// Notes are what people may want to know, and is no fault of Weir's: Azure has what is wanted.
	Notes []Cause `json:"notes,omitempty"`
}

// Leader says who writes. Known is false where the caller may not see that.
type Leader struct {
	Known  bool   `json:"known"`
	Holder string `json:"holder,omitempty"`
	// Last led before nobody did, and Renewed is when the Lease was renewed last.
	Last    string    `json:"last,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	// Namespace is that of the Lease; empty if there is none.
	Namespace string `json:"namespace,omitempty"`
}

// nobody reports whether Leases are seen and nobody holds Weir's. Where there is none Weir may run without.
func (l Leader) nobody() bool { return l.Known && l.Holder == "" && l.Namespace != "" }

// gone says since when nobody leads, and for whom that is so.
func (l Leader) gone() string {
	text := "no process of Weir leads"
	if !l.Renewed.IsZero() {
		text += " since " + words.Stamp(l.Renewed)
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

// Cause is what stands behind some of what is wrong.
type Cause struct {
	// Name is Azure's error code, else the state.
	Name string `json:"name"`
	// Do is what helps.
	Do string `json:"do,omitempty"`
	// Of are the objects, those that are wrong for longest first.
	Of []Wrong `json:"of"`
}

// Wrong is one object that is not as it should be.
type Wrong struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// Since is when it came to this state. Where only a time is known that it was not before, that is NotBefore.
	Since     time.Time `json:"since,omitzero"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	Why       string    `json:"why,omitempty"`
	// Service is for whom the pool is, if it is for one.
	Service string `json:"service,omitempty"`
	cause   string
}

// NoLeader is the cause where nobody writes.
const NoLeader = "NoLeader"

// Judge says what is wrong of what was seen.
func Judge(s Seen) Report {
	r := Report{At: s.At, Leader: s.Leader, Causes: []Cause{}}
	var wrong, noted []Wrong
	if s.Leader.nobody() {
		wrong = append(wrong, Wrong{Kind: "Lease", Namespace: s.Leader.Namespace, Name: LeaseName, State: NoLeader, cause: NoLeader, Since: s.Leader.Renewed, Why: s.Leader.gone()})
	}
	ofProvisioner, notedOfProvisioner := s.Provisioner.judge()
	wrong, noted = append(wrong, ofProvisioner...), append(noted, notedOfProvisioner...)
	for i := range s.Pools {
		found, waits := ofPool(&s.Pools[i], s.At)
		if len(found) == 0 && stateOf(&s.Pools[i]).Reason == v1alpha1.ReasonPaused {
			r.Paused = append(r.Paused, pausedOf(&s.Pools[i]))
		}
		r.Pools.add(found, len(waits) > 0)
		wrong, r.Waiting = append(wrong, found...), append(r.Waiting, waits...)
	}
	for i := range s.Services {
		if !weirs(&s.Services[i]) {
			continue
		}
		found, waits := ofService(&s.Services[i], s.At)
		r.Services.add(found, len(waits) > 0)
		wrong, noted = append(wrong, found...), append(noted, notedOf(&s.Services[i])...)
		r.Waiting = append(r.Waiting, waits...)
	}
	byEnd(r.Paused)
	slices.SortFunc(r.Waiting, byAge)
	r.Notes = causes(noted)
	r.Causes, r.Level = causes(wrong), len(wrong) == 0
	return r
}

func (c *Count) add(found []Wrong, underWay bool) {
	c.All++
	switch {
	case len(found) > 0:
		c.Wrong++
	case underWay:
		c.UnderWay++
	}
}

// causes puts together what has one cause.
func causes(wrong []Wrong) []Cause {
	of := map[string][]Wrong{}
	for _, w := range wrong {
		of[w.cause] = append(of[w.cause], w)
	}
	all := make([]Cause, 0, len(of))
	for name, those := range of {
		slices.SortFunc(those, byAge)
		c := Cause{Name: name, Do: Remedy(name), Of: those}
		if len(those) == 1 {
			c.Do = RemedyOf(name, those[0])
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Cause) int {
		first := func(c Cause) int {
			if c.Name == NoLeader { // the others do not end before it does
				return 0
			}
			return 1
		}
		return cmp.Or(first(a)-first(b), len(b.Of)-len(a.Of), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// byAge puts what has been so for longest first.
func byAge(a, b Wrong) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// underWay reports whether a pool that is not level needs nobody.
func underWay(p *v1alpha1.BackendPool) bool {
	synced := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced)
	return synced == nil ||
		slices.Contains([]string{v1alpha1.ReasonPending, v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonLeaving}, synced.Reason)
}

// stateOf is the Synced condition of a BackendPool, or what stands for one that it has not got yet.
func stateOf(p *v1alpha1.BackendPool) metav1.Condition {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		return *c
	}
	return metav1.Condition{Reason: v1alpha1.ReasonPending, Message: "Weir has said nothing of it yet", LastTransitionTime: p.CreationTimestamp}
}

// ofPool finds what is wrong of a pool, or else what it waits for.
func ofPool(p *v1alpha1.BackendPool, now time.Time) (found, waits []Wrong) {
	w := Wrong{Kind: "BackendPool", Namespace: p.Namespace, Name: p.Name}
	if p.Spec.ServiceRef != nil {
		w.Service = p.Spec.ServiceRef.Name
	}
	synced := stateOf(p)
	w.State, w.Since, w.Why = synced.Reason, synced.LastTransitionTime.Time, synced.Message
	w.cause = w.State
	switch {
	case w.State == v1alpha1.ReasonLevel:
		if w.cause, w.Since, w.Why = Level(p); w.cause == "" {
			return nil, nil
		}
		w.State = w.cause
	case underWay(p) && now.Sub(w.Since) < tooLong:
		return nil, []Wrong{w}
	case w.State == v1alpha1.ReasonPaused:
		return overdue(p, w, now), nil
	case w.State == v1alpha1.ReasonRetrying || w.State == v1alpha1.ReasonFailed:
		if last := p.Status.LastOutcome; last != nil && last.Code != "" {
			w.cause, w.Since = last.Code, last.Since.Time
		}
	}
	return []Wrong{w}, nil
}

// How the message of a level pool goes on that somebody misses nodes in, and that labels keep nodes out
// of, which nobody misses as long as there are others; and how it begins where it has none.
const (
	leftOut      = "; left out: "
	keptOut      = "; kept out: "
	levelWithout = "level with no nodes"
)

// The causes where a pool is level with what it can have: without some nodes, or without any.
const (
	NodesLeftOut = "NodesLeftOut"
	NoNodeLeft   = "NoNodeLeft"
)

// Level says what is wrong of a pool that is level; the cause is empty if nothing is.
func Level(p *v1alpha1.BackendPool) (cause string, since time.Time, why string) {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionContested); c != nil && c.Status == metav1.ConditionTrue {
		return c.Type, c.LastTransitionTime.Time, c.Message
	}
	is := stateOf(p)
	without, misses := strings.HasPrefix(is.Message, levelWithout), strings.Contains(is.Message, leftOut)
	switch {
	case without && (misses || strings.Contains(is.Message, keptOut)):
		cause = NoNodeLeft
	case misses:
		cause = NodesLeftOut
	default:
		return "", time.Time{}, ""
	}
	return cause, is.LastTransitionTime.Time, is.Message
}

// weirs reports whether Weir has, or had, something in Azure for a Service, or speaks of it.
func weirs(s *corev1.Service) bool {
	return slices.Contains(s.Finalizers, view.ServiceFinalizer) || slices.ContainsFunc(s.Status.Conditions, func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Type, "weir.dev/")
	})
}

// passing are the reasons of a Service's conditions that end by themselves, and told those that another
// condition tells.
var (
	passing = []string{servicelb.WhyUpdating, servicelb.WhyRetryAfter, servicelb.WhyPoolFilling, servicelb.WhyLeaving, servicelb.WhyMigrating}
	told    = []string{servicelb.WhyNotAccepted, servicelb.WhyContested}
)

// open are the reasons of conditions that are True, of a Service that everybody may connect to who should not, or
// that lacks something that it asks for.
var open = []string{servicelb.WhyOpen, servicelb.WhyNotGuarded, servicelb.WhyPartial}

// notedOf finds what people may want to know of a Service that has what it wants.
func notedOf(s *corev1.Service) (noted []Wrong) {
	for _, c := range s.Status.Conditions {
		if strings.HasPrefix(c.Type, "weir.dev/") && c.Reason == servicelb.WhyNoEndpoints {
			noted = append(noted, Wrong{Kind: "Service", Namespace: s.Namespace, Name: s.Name, State: c.Reason, cause: c.Reason, Why: c.Message})
		}
	}
	return noted
}

// ofService finds what is wrong of a Service, and what it waits for.
func ofService(s *corev1.Service, now time.Time) (found, waits []Wrong) {
	for _, c := range s.Status.Conditions {
		name, ours := strings.CutPrefix(c.Type, "weir.dev/")
		bad, since, notBefore := c.Status == metav1.ConditionFalse, c.LastTransitionTime.Time, time.Time{}
		switch {
		case c.Type == view.ConditionContested:
			bad = c.Status == metav1.ConditionTrue
		case slices.Contains(open, c.Reason): // the condition was True before
			bad, since, notBefore = true, time.Time{}, since
		}
		w := Wrong{Kind: "Service", Namespace: s.Namespace, Name: s.Name, State: name + ": " + c.Reason, cause: c.Reason, Since: since, NotBefore: notBefore, Why: c.Message}
		if c.Status == metav1.ConditionFalse {
			w.State = "not " + w.State
		}
		switch {
		case !ours || !bad || slices.Contains(told, c.Reason):
		case slices.Contains(passing, c.Reason) && now.Sub(since) < tooLong:
			waits = append(waits, w)
		default:
			if c.Reason == servicelb.WhyInvalid { // of a BackendPool something else helps
				w.cause = servicelb.WhyNotAccepted
			}
			found = append(found, w)
		}
	}
	if len(found) == 0 && len(waits) == 0 && len(s.Status.LoadBalancer.Ingress) == 0 {
		waits = append(waits, Wrong{Kind: "Service", Namespace: s.Namespace, Name: s.Name, State: v1alpha1.ReasonPending, Since: s.CreationTimestamp.Time, Why: "it has no address yet"})
	}
	return found, waits
}
