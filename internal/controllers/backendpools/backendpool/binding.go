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
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// State is what Weir may do with the pool of a BackendPool.
type State string

// The states.
const (
	Active         State = "active"      // the pool must contain the members
	ServiceMissing State = "serviceGone" // the Service no longer exists: remove Weir's addresses
	Paused         State = "paused"      // keep the pool unchanged
	Duplicate      State = "duplicate"   // another BackendPool owns the pool
	DryRun         State = "dryRun"      // keep the pool unchanged, like everything of its Service
	Invalid        State = "invalid"     // the pool or the members cannot be determined
	NotAllowed     State = "notAllowed"  // the namespace may not use the pool: keep it unchanged
	Releasing      State = "leaving"     // the pool is deleted with its load balancer's rules, or remains for others
)

// Binding is the pool of a BackendPool, and what Weir may do with it, at one moment.
type Binding struct {
	State    State
	Deleting bool
	// HasRecord is true once Weir has recorded addresses for the pool.
	HasRecord bool
	Pool      lb.PoolID
	// Service is set if the state is active and the members come from a Service.
	Service    schedule.ServiceName
	ServiceUID types.UID
	// Reason and the message become the Synced condition; empty if the state is active.
	Reason, Message string
}

// RemovesMembers reports whether Weir's addresses must be removed from the pool; false if Weir never took it.
func (b Binding) RemovesMembers() bool {
	return b.HasRecord && (b.State == ServiceMissing || b.Deleting && b.State == Active)
}

// AllowsUpdates reports whether the updater may write to the pool for this BackendPool.
func (b Binding) AllowsUpdates() bool {
	return b.State == Active && !b.Deleting || b.RemovesMembers()
}

func (b Binding) withState(state State, reason, message string) Binding {
	b.State, b.Reason, b.Message = state, reason, message
	return b
}

// Permission ranks a BackendPool's claim to an Azure pool; the highest-ranked BackendPool owns it.
type Permission int

// The rights, in ascending order.
const (
	NoPermission Permission = iota // Weir neither reads nor writes the pool
	Granted                        // an administrator granted the load balancer to the namespace
	Managed                        // Weir created the BackendPool, or the pool belongs to its Service
)

// Rejection explains NoPermission: reason and message of the Synced condition.
type Rejection struct{ Reason, Message string }

// ResolveBinding evaluates a BackendPool. The first rule that applies decides.
func (c *Controller) ResolveBinding(p *v1alpha1.BackendPool, now time.Time) Binding {
	binding := Binding{Deleting: p.DeletionTimestamp != nil, HasRecord: c.statuses.HasRecord(p)}
	var err error
	if binding.Pool, err = c.Cluster.Target(p); err != nil {
		return binding.withState(Invalid, v1alpha1.ReasonInvalid, err.Error())
	}
	// An invalid selector does not block deletion.
	if _, err := NodeSelector(p); err != nil && !binding.Deleting {
		return binding.withState(Invalid, v1alpha1.ReasonInvalid, "nodes.selector: "+err.Error())
	}
	if permission, rejection := c.Owner.Permission(p, binding.Pool); permission == NoPermission {
		state := NotAllowed
		if rejection.Reason == v1alpha1.ReasonDuplicate {
			state = Duplicate
		}
		return binding.withState(state, rejection.Reason, rejection.Message)
	}
	if holder := c.PoolOwner(binding.Pool); holder != nil && holder.UID != p.UID {
		return binding.withState(Duplicate, v1alpha1.ReasonDuplicate,
			fmt.Sprintf("BackendPool %s already holds %s", objectKey(holder.Namespace, holder.Name), DescribePool(binding.Pool)))
	}
	if p.Spec.IsPausedAt(now) {
		return binding.withState(Paused, v1alpha1.ReasonPaused, DescribePause(p)+": the pool remains unchanged in Azure")
	}
	if p.Spec.ServiceRef == nil {
		return binding.withState(Active, "", "")
	}
	return c.resolveServiceBinding(schedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}, p, binding)
}

func (c *Controller) resolveServiceBinding(name schedule.ServiceName, p *v1alpha1.BackendPool, binding Binding) Binding {
	service, exists := c.Cluster.Service(name)
	if exists && service.DryRun && !binding.Deleting {
		return binding.withState(DryRun, v1alpha1.ReasonDryRun,
			"Service "+objectKey(name.Namespace, name.Name)+" has "+dryRunAnnotation+": the pool remains unchanged in Azure")
	}
	if exists && service.HasLoadBalancer && service.isReleasing() && c.Owner.IsCreatedByWeir(p) {
		return binding.withState(Releasing, v1alpha1.ReasonLeaving,
			"Service "+objectKey(name.Namespace, name.Name)+" no longer uses its load balancer, and the pool is deleted with it unless others have addresses there")
	}
	if reason, message := unsuitableReason(name, service, exists); reason != "" {
		return binding.withState(ServiceMissing, reason, message)
	}
	binding.Service, binding.ServiceUID = name, service.UID
	return binding.withState(Active, "", "")
}

// isReleasing reports whether the Service no longer needs a load balancer.
func (s Service) isReleasing() bool { return s.Deleting || s.Type != typeLoadBalancer }

// unsuitableReason returns why a Service cannot supply members; it needs node ports.
func unsuitableReason(name schedule.ServiceName, service Service, exists bool) (reason, message string) {
	label := "Service " + objectKey(name.Namespace, name.Name)
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

// PoolOwner returns the BackendPool that owns a pool: the one with the highest permission, then the one that
// took it, the one that Weir created, the oldest, the first by name. It returns nil if none may use the pool.
func (c *Controller) PoolOwner(pool lb.PoolID) *v1alpha1.BackendPool {
	var holder *v1alpha1.BackendPool
	var highest Permission
	for _, p := range c.Cluster.PoolsAt(pool.Key()) {
		if p.DeletionTimestamp != nil && !c.statuses.HasRecord(p) {
			continue
		}
		permission, _ := c.Owner.Permission(p, pool)
		if permission > highest || permission == highest && holder != nil && c.compareClaims(p, holder) < 0 {
			holder, highest = p, permission
		}
	}
	return holder
}

// compareClaims orders BackendPools with equal permission; negative if a comes first.
func (c *Controller) compareClaims(a, b *v1alpha1.BackendPool) int {
	for _, first := range []func(*v1alpha1.BackendPool) bool{c.statuses.HasRecord, c.Owner.IsCreatedByWeir} {
		switch aFirst, bFirst := first(a), first(b); {
		case aFirst && !bFirst:
			return -1
		case bFirst && !aFirst:
			return 1
		}
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return strings.Compare(objectKey(a.Namespace, a.Name), objectKey(b.Namespace, b.Name))
}

// NodeSelector returns the node selector; nil for a pool of a Service.
func NodeSelector(p *v1alpha1.BackendPool) (labels.Selector, error) {
	if p.Spec.Nodes == nil {
		return nil, nil //nolint:nilnil // a pool of a Service has none
	}
	terms := len(p.Spec.Nodes.Selector.MatchLabels)
	for _, e := range p.Spec.Nodes.Selector.MatchExpressions {
		terms += 1 + len(e.Values)
	}
	if terms > maxSelectorTerms {
		return nil, fmt.Errorf("it has %d labels, expressions and values, and at most %d are allowed", terms, maxSelectorTerms)
	}
	return metav1.LabelSelectorAsSelector(&p.Spec.Nodes.Selector)
}

// maxSelectorTerms limits what each change of a node costs: a selector of a megabyte takes 20 ms.
const maxSelectorTerms = 1000

// RefOf returns the reference of a BackendPool.
func RefOf(p *v1alpha1.BackendPool) schedule.Ref {
	return schedule.Ref{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
}

func objectKey(namespace, name string) string { return namespace + "/" + name }
