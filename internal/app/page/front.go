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
	"weir.dev/weir/internal/app/status"
)

// Limits of what the front page shows.
const (
	shownGates     = 20
	shownOfCause   = 10 // objects per cause, as in weir status
	shownBalancers = 40 // the others are behind links
	shownColumns   = 60 // pools per load balancer
	shownCauses    = 20
	shownBusy      = 10 // pools in progress per load balancer
	shownPaused    = 20
)

// States of a pool or Service, most urgent first.
const (
	isWrong    = "wrong"
	isUnderWay = "underway"
	isPaused   = "paused"
	isLevel    = "level"
)

type pool struct {
	Namespace, Name, Service, Pool, Balancer string
	Is, State                                string
	Since                                    time.Time
	// Next is the earliest time of the next attempt; zero if nothing waits.
	Next time.Time
	// Gate is the reason: RetryAfter, or GateClosed if another pool received it.
	Gate  string
	Level level
}

type balancer struct {
	Name                       string
	All, Level, UnderWay, Away int // Away counts pools with a problem
	Paused                     int
	// Pools is a sample, failed ones first, proportional to the number in each state.
	Pools []pool
	// Busy is a sample of the pools in progress; failed ones are listed by cause.
	Busy []pool
}

func (b balancer) More() int { return b.All - len(b.Pools) }

type cause struct {
	Name, Why, Do string
	All           []object
}

func (c cause) Shown() []object { return c.All[:min(len(c.All), shownOfCause)] }

func (c cause) More() int { return len(c.All) - len(c.Shown()) }

type object struct {
	status.Wrong

	Is    string
	Next  time.Time
	Level level
}

// front summarizes a cluster. It is small enough to cache.
type front struct {
	At            time.Time
	Verdict       string
	Is            string
	Mends         string
	Causes, Notes []cause
	Paused        []status.Paused
	Balancers     []balancer
	MoreBalancers int
	Gates         []gate
	pools         []pool
}

func (f *front) ShownCauses() []cause { return f.Causes[:min(len(f.Causes), shownCauses)] }

func (f *front) MoreCauses() int { return len(f.Causes) - len(f.ShownCauses()) }

func (f *front) ShownPaused() []status.Paused { return f.Paused[:min(len(f.Paused), shownPaused)] }

func (f *front) MorePaused() int { return len(f.Paused) - len(f.ShownPaused()) }

func frontOf(seen status.Seen) *front {
	r := status.Judge(seen)
	f := &front{At: seen.At, Verdict: r.Verdict(), Is: isLevel, Paused: r.Paused}
	wrong := map[string]bool{} // namespace/name
	for _, c := range r.Causes {
		for _, o := range c.Of {
			if o.Kind == "BackendPool" {
				wrong[o.Namespace+"/"+o.Name] = true
			}
		}
	}
	switch {
	case !r.Level:
		f.Is = isWrong
	case r.Pools.UnderWay+r.Services.UnderWay > 0:
		f.Is = isUnderWay
	}
	f.Mends, _ = r.Mends()
	for i := range seen.Pools {
		f.pools = append(f.pools, rowOf(&seen.Pools[i], wrong, seen.At))
	}
	slices.SortFunc(f.pools, func(a, b pool) int {
		return cmp.Or(order(a.Is)-order(b.Is), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	byName := map[string]*pool{}
	for i := range f.pools {
		byName[f.pools[i].Namespace+"/"+f.pools[i].Name] = &f.pools[i]
	}
	f.Causes, f.Notes = causesOf(r.Causes, isWrong, byName), causesOf(r.Notes, isLevel, byName)
	f.Gates = gatesOf(f.pools)
	f.Balancers = balancersOf(f.pools)
	f.MoreBalancers = max(0, len(f.Balancers)-shownBalancers)
	f.Balancers = slices.Clip(f.Balancers[:len(f.Balancers)-f.MoreBalancers])
	return f
}

func order(is string) int { return slices.Index([]string{isWrong, isUnderWay, isPaused, isLevel}, is) }

func rowOf(p *v1alpha1.BackendPool, wrong map[string]bool, now time.Time) pool {
	row := pool{
		Namespace: p.Namespace, Name: p.Name, Pool: p.Spec.PoolName, Balancer: p.Spec.LoadBalancer.Name,
		Is: isUnderWay, State: v1alpha1.ReasonPending, Level: levelOf(&p.Status),
	}
	if g := p.Spec.LoadBalancer.ResourceGroup; g != "" {
		row.Balancer = g + "/" + row.Balancer
	}
	if p.Spec.ServiceRef != nil {
		row.Service = p.Spec.ServiceRef.Name
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSynced); c != nil {
		row.State, row.Since = c.Reason, c.LastTransitionTime.Time
	}
	switch {
	case wrong[p.Namespace+"/"+p.Name]:
		row.Is = isWrong
	case row.State == v1alpha1.ReasonLevel:
		row.Is = isLevel
	case row.State == v1alpha1.ReasonPaused:
		row.Is = isPaused
	}
	parked := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionParked)
	if at := p.Status.NextEligibleAt; at != nil && at.After(now) && parked != nil && parked.Status == metav1.ConditionTrue {
		row.Next, row.Gate = at.Time, parked.Reason
	}
	return row
}

func causesOf(all []status.Cause, is string, pools map[string]*pool) []cause {
	out := make([]cause, len(all))
	for i, c := range all {
		out[i] = cause{Name: c.Name, Why: c.Of[0].Why, Do: c.Do}
		for _, o := range c.Of {
			of := object{Wrong: o, Is: is}
			if p := pools[o.Namespace+"/"+o.Name]; p != nil && o.Kind == "BackendPool" {
				of.Next, of.Level = p.Next, p.Level
			}
			out[i].All = append(out[i].All, of)
		}
	}
	return out
}

// balancersOf sorts load balancers by number of problems. Pools keep their order.
func balancersOf(pools []pool) []balancer {
	of := map[string][]*pool{}
	for i := range pools {
		name := strings.ToLower(pools[i].Balancer) // Azure names are case-insensitive
		of[name] = append(of[name], &pools[i])
	}
	all := make([]balancer, 0, len(of))
	for _, its := range of {
		b := balancer{Name: its[0].Balancer, All: len(its)}
		for _, p := range its {
			b.count(p)
		}
		for i := range min(len(its), shownColumns) {
			b.Pools = append(b.Pools, *its[i*len(its)/min(len(its), shownColumns)])
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b balancer) int {
		return cmp.Or(b.Away-a.Away, b.UnderWay-a.UnderWay, cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (b *balancer) count(p *pool) {
	switch p.Is {
	case isWrong:
		b.Away++
	case isUnderWay:
		b.UnderWay++
		if len(b.Busy) < shownBusy {
			b.Busy = append(b.Busy, *p)
		}
	case isPaused:
		b.Paused++
	default:
		b.Level++
	}
}

func (b balancer) Worst() string {
	switch {
	case b.Away > 0:
		return isWrong
	case b.UnderWay > 0:
		return isUnderWay
	}
	return isLevel
}
