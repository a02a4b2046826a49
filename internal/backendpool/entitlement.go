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
	Active      State = "active"      // the pool must contain the members
	ServiceGone State = "serviceGone" // the Service no longer exists: remove Weir's addresses
	Paused      State = "paused"      // keep the pool unchanged
	Duplicate   State = "duplicate"   // another BackendPool owns the pool
	DryRun      State = "dryRun"      // keep the pool unchanged, like everything of its Service
	Invalid     State = "invalid"     // the pool or the members cannot be determined
	NotAllowed  State = "notAllowed"  // the namespace may not use the pool: keep it unchanged
	Leaving     State = "leaving"     // the pool is deleted with its load balancer's rules, or remains for others
)

// Entitlement is what a BackendPool is entitled to at one moment.
type Entitlement struct {
	State    State
	Deleting bool
	// Taken is true once Weir has recorded addresses for the pool.
	Taken bool
	Pool  lb.PoolID
	// Service is set if the state is active and the members come from a Service.
	Service    poolschedule.ServiceName
	ServiceUID types.UID
	// Reason and the message become the Synced condition; empty if the state is active.
	Reason, Why string
}

// Removes reports whether Weir's addresses must be removed from the pool; false if Weir never took it.
func (e Entitlement) Removes() bool {
	return e.Taken && (e.State == ServiceGone || e.Deleting && e.State == Active)
}

// Works reports whether the updater may write to the pool for this BackendPool.
func (e Entitlement) Works() bool {
	return e.State == Active && !e.Deleting || e.Removes()
}

func (e Entitlement) as(is State, reason, why string) Entitlement {
	e.State, e.Reason, e.Why = is, reason, why
	return e
}

// Right ranks a BackendPool's claim to an Azure pool; the highest-ranked BackendPool owns it.
type Right int

// The rights, in ascending order.
const (
	NoRight Right = iota // Weir neither reads nor writes the pool
	Granted              // an administrator granted the load balancer to the namespace
	Own                  // Weir created the BackendPool, or the pool belongs to its Service
)

// Refusal explains NoRight: reason and message of the Synced condition.
type Refusal struct{ Reason, Why string }

// Entitlement evaluates a BackendPool. The first rule that applies decides.
func (c *Controller) Entitlement(p *v1alpha1.BackendPool, now time.Time) Entitlement {
	binding := Entitlement{Deleting: p.DeletionTimestamp != nil, Taken: c.statuses.Taken(p)}
	var err error
	if binding.Pool, err = c.Cluster.Target(p); err != nil {
		return binding.as(Invalid, v1alpha1.ReasonInvalid, err.Error())
	}
	// An invalid selector does not block deletion.
	if _, err := Selector(p); err != nil && !binding.Deleting {
		return binding.as(Invalid, v1alpha1.ReasonInvalid, "nodes.selector: "+err.Error())
	}
	if right, rejection := c.Owner.Right(p, binding.Pool); right == NoRight {
		state := NotAllowed
		if rejection.Reason == v1alpha1.ReasonDuplicate {
			state = Duplicate
		}
		return binding.as(state, rejection.Reason, rejection.Why)
	}
	if holder := c.Holder(binding.Pool); holder != nil && holder.UID != p.UID {
		return binding.as(Duplicate, v1alpha1.ReasonDuplicate,
			fmt.Sprintf("BackendPool %s already holds %s", key(holder.Namespace, holder.Name), DescribePool(binding.Pool)))
	}
	if p.Spec.PausedAt(now) {
		return binding.as(Paused, v1alpha1.ReasonPaused, pausing.Text(p)+": the pool stays as it is in Azure")
	}
	if p.Spec.ServiceRef == nil {
		return binding.as(Active, "", "")
	}
	return c.entitledBy(poolschedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}, p, binding)
}

func (c *Controller) entitledBy(name poolschedule.ServiceName, p *v1alpha1.BackendPool, binding Entitlement) Entitlement {
	service, exists := c.Cluster.Service(name)
	if exists && service.DryRun && !binding.Deleting {
		return binding.as(DryRun, v1alpha1.ReasonDryRun,
			"Service "+key(name.Namespace, name.Name)+" has "+dryRunAnnotation+": the pool stays as it is in Azure")
	}
	if exists && service.HasLoadBalancer && service.leaves() && c.Owner.Made(p) {
		return binding.as(Leaving, v1alpha1.ReasonLeaving,
			"Service "+key(name.Namespace, name.Name)+" gives up its load balancer, and the pool goes with it, unless others have addresses there")
	}
	if reason, why := unfit(name, service, exists); reason != "" {
		return binding.as(ServiceGone, reason, why)
	}
	binding.Service, binding.ServiceUID = name, service.UID
	return binding.as(Active, "", "")
}

// leaves reports whether the Service no longer needs a load balancer.
func (s Service) leaves() bool { return s.Deleting || s.Type != typeLoadBalancer }

// unfit returns why a Service cannot supply members; it needs node ports.
func unfit(name poolschedule.ServiceName, service Service, exists bool) (reason, message string) {
	label := "Service " + key(name.Namespace, name.Name)
	switch {
	case !exists:
		return v1alpha1.ReasonServiceNotFound, label + " does not exist"
	case service.Deleting:
		return v1alpha1.ReasonServiceNotFound, label + " is being deleted"
	case service.Type != typeLoadBalancer && service.Type != typeNodePort:
		return v1alpha1.ReasonServiceUnfit, fmt.Sprintf("%s has type %s and so no node ports; it needs type LoadBalancer or NodePort", label, service.Type)
	}
	return "", ""
}

// Holder returns the BackendPool that owns a pool: the one with the highest permission, then the one that
// took it, the one that Weir created, the oldest, the first by name. It returns nil if none may use the pool.
func (c *Controller) Holder(pool lb.PoolID) *v1alpha1.BackendPool {
	var holder *v1alpha1.BackendPool
	var highest Right
	for _, p := range c.Cluster.PoolsAt(pool.Key()) {
		if p.DeletionTimestamp != nil && !c.statuses.Taken(p) {
			continue
		}
		right, _ := c.Owner.Right(p, pool)
		if right > highest || right == highest && holder != nil && c.precedence(p, holder) < 0 {
			holder, highest = p, right
		}
	}
	return holder
}

// precedence orders BackendPools with equal permission; negative if a comes first.
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

// Selector returns the node selector; nil for a pool of a Service.
func Selector(p *v1alpha1.BackendPool) (labels.Selector, error) {
	if p.Spec.Nodes == nil {
		return nil, nil //nolint:nilnil // a pool of a Service has none
	}
	return metav1.LabelSelectorAsSelector(&p.Spec.Nodes.Selector)
}

// RefOf returns the reference of a BackendPool.
func RefOf(p *v1alpha1.BackendPool) poolschedule.Ref {
	return poolschedule.Ref{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

func key(namespace, name string) string { return namespace + "/" + name }
