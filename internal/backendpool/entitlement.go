// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/pausing"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// State is what a BackendPool is entitled to.
type State string

// The states.
const (
	Active      State = "active"      // the pool has to hold the members
	ServiceGone State = "serviceGone" // no member is left, for good: ours have to go
	Paused      State = "paused"      // the pool stays as it is
	Duplicate   State = "duplicate"   // another BackendPool holds the pool
	DryRun      State = "dryRun"      // the pool stays as it is, as all that its Service has
	Invalid     State = "invalid"     // there is no telling which pool or members are meant
	NotAllowed  State = "notAllowed"  // its namespace may not bind the pool, which stays as it is
	Leaving     State = "leaving"     // the pool goes with its load balancer's rules, or stays for others
)

// Entitlement is what a BackendPool is entitled to at one moment.
type Entitlement struct {
	State    State
	Deleting bool
	// Taken is true once the pool was taken: what was ours then is recorded.
	Taken bool
	Pool  lb.PoolID
	// Service is whom operations are for; zero unless the state is active and the
	// members come from a Service.
	Service    poolschedule.ServiceName
	ServiceUID types.UID
	// Reason and Why become the Synced condition; empty if the state is active.
	Reason, Why string
}

// Removes reports whether the pool must hold none of our addresses. Where the pool
// was never taken there is nothing of ours to remove.
func (e Entitlement) Removes() bool {
	return e.Taken && (e.State == ServiceGone || e.Deleting && e.State == Active)
}

// Works reports whether the lane may touch the pool for this BackendPool.
func (e Entitlement) Works() bool {
	return e.State == Active && !e.Deleting || e.Removes()
}

func (e Entitlement) as(is State, reason, why string) Entitlement {
	e.State, e.Reason, e.Why = is, reason, why
	return e
}

// Right is what a BackendPool has to its pool. Who has more holds it.
type Right int

// The rights.
const (
	NoRight Right = iota // nothing is read or written for it
	Granted              // an administrator allows the load balancer to its namespace
	Own                  // Weir made it, or it is for the Service whose pool that is
)

// Refusal says why a BackendPool has no right to its pool: reason and message of its condition.
type Refusal struct{ Reason, Why string }

// Entitlement judges a BackendPool at a moment. The first that applies decides.
func (c *Controller) Entitlement(p *v1alpha1.BackendPool, now time.Time) Entitlement {
	is := Entitlement{Deleting: p.DeletionTimestamp != nil, Taken: c.statuses.Taken(p)}
	var err error
	if is.Pool, err = c.Cluster.Target(p); err != nil {
		return is.as(Invalid, v1alpha1.ReasonInvalid, err.Error())
	}
	// A selector that nobody can read does not keep a BackendPool from going.
	if _, err := Selector(p); err != nil && !is.Deleting {
		return is.as(Invalid, v1alpha1.ReasonInvalid, "nodes.selector: "+err.Error())
	}
	if has, not := c.Owner.Right(p, is.Pool); has == NoRight {
		state := NotAllowed
		if not.Reason == v1alpha1.ReasonDuplicate {
			state = Duplicate
		}
		return is.as(state, not.Reason, not.Why)
	}
	if holder := c.Holder(is.Pool); holder != nil && holder.UID != p.UID {
		return is.as(Duplicate, v1alpha1.ReasonDuplicate,
			fmt.Sprintf("BackendPool %s already holds %s", key(holder.Namespace, holder.Name), DescribePool(is.Pool)))
	}
	if p.Spec.PausedAt(now) {
		return is.as(Paused, v1alpha1.ReasonPaused, pausing.Text(p)+": the pool stays as it is in Azure")
	}
	if p.Spec.ServiceRef == nil {
		return is.as(Active, "", "")
	}
	return c.entitledBy(poolschedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}, p, is)
}

// entitledBy judges one whose members come from a Service.
func (c *Controller) entitledBy(name poolschedule.ServiceName, p *v1alpha1.BackendPool, is Entitlement) Entitlement {
	service, there := c.Cluster.Service(name)
	if there && service.DryRun && !is.Deleting {
		return is.as(DryRun, v1alpha1.ReasonDryRun,
			"Service "+key(name.Namespace, name.Name)+" has "+dryRunAnnotation+": the pool stays as it is in Azure")
	}
	if there && service.HasLoadBalancer && service.leaves() && c.Owner.Made(p) {
		return is.as(Leaving, v1alpha1.ReasonLeaving,
			"Service "+key(name.Namespace, name.Name)+" gives up its load balancer, and the pool goes with it, unless others have addresses there")
	}
	if reason, why := unfit(name, service, there); reason != "" {
		return is.as(ServiceGone, reason, why)
	}
	is.Service, is.ServiceUID = name, service.UID
	return is.as(Active, "", "")
}

// leaves reports whether a Service needs no load balancer any more.
func (s Service) leaves() bool { return s.Deleting || s.Type != typeLoadBalancer }

// unfit says why a Service cannot fill a pool: nodes take traffic for its endpoints
// at its node ports alone.
func unfit(name poolschedule.ServiceName, service Service, there bool) (reason, why string) {
	called := "Service " + key(name.Namespace, name.Name)
	switch {
	case !there:
		return v1alpha1.ReasonServiceNotFound, called + " does not exist"
	case service.Deleting:
		return v1alpha1.ReasonServiceNotFound, called + " is being deleted"
	case service.Type != typeLoadBalancer && service.Type != typeNodePort:
		return v1alpha1.ReasonServiceUnfit, fmt.Sprintf("%s has type %s and so no node ports; it needs type LoadBalancer or NodePort", called, service.Type)
	}
	return "", ""
}

// Holder returns whose pool it is: the one with the most right to it, of these the one that
// took it, else that which Weir made, else the oldest, else the first by name. Nil if nobody has a right to it.
func (c *Controller) Holder(pool lb.PoolID) *v1alpha1.BackendPool {
	var holder *v1alpha1.BackendPool
	var most Right
	for _, p := range c.Cluster.PoolsAt(pool.Key()) {
		if p.DeletionTimestamp != nil && !c.statuses.Taken(p) {
			continue
		}
		has, _ := c.Owner.Right(p, pool)
		if has > most || has == most && holder != nil && c.precedence(p, holder) < 0 {
			holder, most = p, has
		}
	}
	return holder
}

// precedence is negative if the first of two with the same right comes before the other.
func (c *Controller) precedence(a, b *v1alpha1.BackendPool) int {
	for _, first := range []func(*v1alpha1.BackendPool) bool{c.statuses.Taken, c.Owner.Made} {
		switch is, other := first(a), first(b); {
		case is && !other:
			return -1
		case other && !is:
			return 1
		}
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return strings.Compare(key(a.Namespace, a.Name), key(b.Namespace, b.Name))
}

// Selector returns the selector of a pool of nodes; nil for any other.
func Selector(p *v1alpha1.BackendPool) (labels.Selector, error) {
	if p.Spec.Nodes == nil {
		return nil, nil //nolint:nilnil // a pool of a Service has none
	}
	return metav1.LabelSelectorAsSelector(&p.Spec.Nodes.Selector)
}

// RefOf names a BackendPool.
func RefOf(p *v1alpha1.BackendPool) poolschedule.Ref {
	return poolschedule.Ref{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

func key(namespace, name string) string { return namespace + "/" + name }
