// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// Limits of what the front page shows.
const (
	maxDelays          = 20
	maxObjectsPerCause = 10 // objects per cause, as in weir status
	maxLoadBalancers   = 40 // the others are behind links
	maxPoolsPerChart   = 60 // pools per load balancer
	maxCauses          = 20
	maxUpdatingPools   = 10 // pools in progress per load balancer
	maxPausedPools     = 20
	maxLimits          = 20
)

// States of a pool or Service, most urgent first.
const (
	stateFailed   = "wrong"
	stateUpdating = "underway"
	statePaused   = "paused"
	stateInSync   = "insync"
	// stateUnknown is the state of a Weir that the user cannot see.
	stateUnknown = "unknown"
)

type poolRow struct {
	Namespace, Name, Service, Pool, Balancer string
	Class, State                             string
	// Since is zero if only the bound NotBefore is known.
	Since, NotBefore time.Time
	// Next is the earliest time of the next attempt; zero if nothing waits.
	Next time.Time
	// Gate is the reason: RetryAfter, or GateClosed if another pool received it.
	Gate   string
	Counts memberCounts
}

type loadBalancer struct {
	Name                        string
	All, InSync, UnderWay, Away int // Away counts pools with a problem
	Paused                      int
	// Pools is a sample, failed ones first, proportional to the number in each state.
	Pools []poolRow
	// Busy is a sample of the pools in progress; failed ones are listed by cause.
	Busy []poolRow
}

func (b loadBalancer) More() int { return b.All - len(b.Pools) }

type problemCause struct {
	Name, Why, Fix string
	All            []problemObject
}

func (c problemCause) Shown() []problemObject { return c.All[:min(len(c.All), maxObjectsPerCause)] }

func (c problemCause) More() int { return len(c.All) - len(c.Shown()) }

type problemObject struct {
	status.Problem

	Class  string
	Next   time.Time
	Counts memberCounts
}

// frontPage summarizes a cluster. It is small enough to cache.
type frontPage struct {
	At      time.Time
	Verdict string
	Class   string
	// Running describes whether Weir runs, and RunningIs is its state.
	Running, RunningClass string

	Mends         string
	Causes, Notes []problemCause
	Paused        []status.Paused
	Balancers     []loadBalancer
	MoreBalancers int
	Gates         []delay
	// Limits are those of Azure that are near or reached, the fullest first; LimitsUnknown is why they are not known.
	Limits        []plan.LimitUsage
	LimitsUnknown string
	pools         []poolRow
	services      []serviceRow
}

// setLimits keeps the limits that are near or reached.
func (f *frontPage) setLimits(usages []plan.LimitUsage, err error) {
	if err != nil {
		f.LimitsUnknown = err.Error()
	}
	f.Limits = slices.DeleteFunc(usages, func(u plan.LimitUsage) bool { return !u.IsNear() })
	slices.SortStableFunc(f.Limits, func(a, b plan.LimitUsage) int { return cmp.Compare(b.Ratio(), a.Ratio()) })
}

func (f *frontPage) ShownLimits() []plan.LimitUsage { return f.Limits[:min(len(f.Limits), maxLimits)] }

func (f *frontPage) MoreLimits() int { return len(f.Limits) - len(f.ShownLimits()) }

func (f *frontPage) ShownCauses() []problemCause { return f.Causes[:min(len(f.Causes), maxCauses)] }

func (f *frontPage) MoreCauses() int { return len(f.Causes) - len(f.ShownCauses()) }

func (f *frontPage) ShownPaused() []status.Paused {
	return f.Paused[:min(len(f.Paused), maxPausedPools)]
}

func (f *frontPage) MorePaused() int { return len(f.Paused) - len(f.ShownPaused()) }

func newFrontPage(seen status.Snapshot) *frontPage {
	r := status.NewReport(seen)
	f := &frontPage{At: seen.At, Verdict: r.ObjectsText(), Class: stateInSync, Paused: r.Paused, services: newServiceRows(seen, r)}
	f.Running, f.RunningClass = runningState(r)
	wrong := map[string]status.Problem{} // by namespace/name
	for _, c := range r.Causes {
		for _, o := range c.Objects {
			if o.Kind == "BackendPool" {
				wrong[o.Namespace+"/"+o.Name] = o
			}
		}
	}
	switch {
	case !r.InSync:
		f.Class = stateFailed
	case r.Pools.UnderWay+r.Services.UnderWay+r.Gateways.UnderWay > 0:
		f.Class = stateUpdating
	}
	if c, found := r.MainCause(); found {
		f.Mends = c.Name + ": " + c.Fix
	}
	for i := range seen.Pools {
		f.pools = append(f.pools, newPoolRow(&seen.Pools[i], wrong, seen.At))
	}
	slices.SortFunc(f.pools, func(a, b poolRow) int {
		return cmp.Or(stateOrder(a.Class)-stateOrder(b.Class), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	byName := map[string]*poolRow{}
	for i := range f.pools {
		byName[f.pools[i].Namespace+"/"+f.pools[i].Name] = &f.pools[i]
	}
	f.Causes, f.Notes = newCauses(r.Causes, stateFailed, byName), newCauses(r.Notes, stateInSync, byName)
	f.Gates = groupDelays(f.pools)
	f.Balancers = groupByLoadBalancer(f.pools)
	f.MoreBalancers = max(0, len(f.Balancers)-maxLoadBalancers)
	f.Balancers = slices.Clip(f.Balancers[:len(f.Balancers)-f.MoreBalancers])
	return f
}

func runningState(r status.Report) (text, state string) {
	switch {
	case r.HasNoLeader():
		return "Weir does not run: " + r.LeaderText(), stateFailed
	case len(r.Leader.Rivals) > 0:
		return status.TwoLeadersMessage(r.Leader) + ".", stateFailed
	case r.Leader.Known && r.Leader.Holder != "":
		return "Weir runs: " + r.LeaderText(), stateInSync
	}
	return r.LeaderText(), stateUnknown
}

func stateOrder(state string) int {
	return slices.Index([]string{stateFailed, stateUpdating, statePaused, stateInSync, stateUnknown}, state)
}

func newPoolRow(p *v1alpha1.BackendPool, wrong map[string]status.Problem, now time.Time) poolRow {
	row := poolRow{
		Namespace: p.Namespace, Name: p.Name, Pool: p.Spec.PoolName, Balancer: p.Spec.LoadBalancer.Name,
		Class: stateUpdating, State: v1alpha1.ReasonPending, Counts: newMemberCounts(&p.Status),
	}
	if g := p.Spec.LoadBalancer.ResourceGroup; g != "" {
		row.Balancer = g + "/" + row.Balancer
	}
	if p.Spec.ServiceRef != nil {
		row.Service = p.Spec.ServiceRef.Name
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		row.State, row.NotBefore = c.Reason, c.LastTransitionTime.Time // it may have had another reason before
	}
	if row.State == v1alpha1.ReasonInSync {
		row.Since, row.NotBefore = row.NotBefore, time.Time{}
	}
	problem, isWrong := wrong[p.Namespace+"/"+p.Name]
	if isWrong && row.State != v1alpha1.ReasonInSync {
		row.Since, row.NotBefore = problem.Since, problem.NotBefore
	}
	switch {
	case isWrong:
		row.Class = stateFailed
	case row.State == v1alpha1.ReasonInSync:
		row.Class = stateInSync
	case row.State == v1alpha1.ReasonPaused:
		row.Class = statePaused
	}
	parked := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionParked)
	if at := p.Status.NextEligibleAt; at != nil && at.After(now) && parked != nil && parked.Status == metav1.ConditionTrue {
		row.Next, row.Gate = at.Time, parked.Reason
	}
	return row
}

func newCauses(causes []status.Cause, state string, pools map[string]*poolRow) []problemCause {
	out := make([]problemCause, len(causes))
	for i, c := range causes {
		out[i] = problemCause{Name: c.Name, Why: c.Objects[0].Why, Fix: c.Fix}
		for _, o := range c.Objects {
			of := problemObject{Problem: o, Class: state}
			if p := pools[o.Namespace+"/"+o.Name]; p != nil && o.Kind == "BackendPool" {
				of.Next, of.Counts = p.Next, p.Counts
			}
			out[i].All = append(out[i].All, of)
		}
	}
	return out
}

// groupByLoadBalancer sorts load balancers by number of problems. Pools keep their order.
func groupByLoadBalancer(pools []poolRow) []loadBalancer {
	of := map[string][]*poolRow{}
	for i := range pools {
		name := strings.ToLower(pools[i].Balancer) // Azure names are case-insensitive
		of[name] = append(of[name], &pools[i])
	}
	balancers := make([]loadBalancer, 0, len(of))
	for _, rows := range of {
		b := loadBalancer{Name: rows[0].Balancer, All: len(rows)}
		for _, p := range rows {
			b.countPool(p)
		}
		for i := range min(len(rows), maxPoolsPerChart) {
			b.Pools = append(b.Pools, *rows[i*len(rows)/min(len(rows), maxPoolsPerChart)])
		}
		balancers = append(balancers, b)
	}
	slices.SortFunc(balancers, func(a, b loadBalancer) int {
		return cmp.Or(b.Away-a.Away, b.UnderWay-a.UnderWay, cmp.Compare(a.Name, b.Name))
	})
	return balancers
}

func (b *loadBalancer) countPool(p *poolRow) {
	switch p.Class {
	case stateFailed:
		b.Away++
	case stateUpdating:
		b.UnderWay++
		if len(b.Busy) < maxUpdatingPools {
			b.Busy = append(b.Busy, *p)
		}
	case statePaused:
		b.Paused++
	default:
		b.InSync++
	}
}

func (b loadBalancer) Worst() string {
	switch {
	case b.Away > 0:
		return stateFailed
	case b.UnderWay > 0:
		return stateUpdating
	}
	return stateInSync
}
