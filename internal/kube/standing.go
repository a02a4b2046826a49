// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// state is what a BackendPool is entitled to.
type state string

const (
	stateActive      state = "active"      // the pool has to hold the members
	stateServiceGone state = "serviceGone" // no member is left, for good: ours have to go
	statePaused      state = "paused"      // the pool stays as it is
	stateDuplicate   state = "duplicate"   // another BackendPool holds the pool
	stateDryRun      state = "dryRun"      // the pool stays as it is, as all that its Service has
	stateInvalid     state = "invalid"     // there is no telling which pool or members are meant
	stateNotAllowed  state = "notAllowed"  // its namespace may not bind the pool, which stays as it is
	stateLeaving     state = "leaving"     // the pool goes with its load balancer's rules
)

// standing is the judgement about a BackendPool at one moment.
type standing struct {
	state    state
	deleting bool
	// taken is true once the pool was taken: what was ours then is recorded.
	taken bool
	pool  lb.PoolID
	// service is whom operations are for; zero unless the state is active and the
	// members come from a Service.
	service    poolupdate.ServiceName
	serviceUID types.UID
	// reason and why become the Synced condition; empty if the state is active.
	reason, why string
}

// removes reports whether the pool must hold none of our addresses. Where the pool
// was never taken there is nothing of ours to remove.
func (s standing) removes() bool {
	return s.taken && (s.state == stateServiceGone || s.deleting && s.state == stateActive)
}

// works reports whether the lane may touch the pool for this BackendPool.
func (s standing) works() bool {
	return s.state == stateActive && !s.deleting || s.removes()
}

// standingOf judges a BackendPool. The first that applies decides.
func (s *snapshot) standingOf(p *v1alpha1.BackendPool) standing {
	st := standing{deleting: p.DeletionTimestamp != nil, taken: s.taken(p)}
	var err error
	if st.pool, err = s.place.of(p); err != nil {
		return st.as(stateInvalid, v1alpha1.ReasonInvalid, err.Error())
	}
	// A selector that nobody can read does not keep a BackendPool from going.
	if _, err := selectorOf(p); err != nil && !st.deleting {
		return st.as(stateInvalid, v1alpha1.ReasonInvalid, "nodes.selector: "+err.Error())
	}
	if has, not := s.right(p, st.pool); has == rightNone {
		is := stateNotAllowed
		if not.reason == v1alpha1.ReasonDuplicate {
			is = stateDuplicate
		}
		return st.as(is, not.reason, not.why)
	}
	if holder := s.holder(st.pool); holder != nil && holder.UID != p.UID {
		return st.as(stateDuplicate, v1alpha1.ReasonDuplicate,
			fmt.Sprintf("BackendPool %s already holds %s", key(holder.Namespace, holder.Name), describePool(st.pool)))
	}
	if p.Spec.Paused {
		return st.as(statePaused, v1alpha1.ReasonPaused, "spec.paused is set: the pool stays as it is in Azure")
	}
	if p.Spec.ServiceRef == nil {
		return st.as(stateActive, "", "")
	}
	name := poolupdate.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	service := s.service(name)
	if service != nil && dryRun(service) && !st.deleting {
		return st.as(stateDryRun, v1alpha1.ReasonDryRun,
			"Service "+key(name.Namespace, name.Name)+" has "+DryRunAnnotation+": the pool stays as it is in Azure")
	}
	if service != nil && bound(service) && s.made(p) && leaving(service) {
		return st.as(stateLeaving, v1alpha1.ReasonLeaving,
			"Service "+key(name.Namespace, name.Name)+" gives up its load balancer, and the pool goes with it")
	}
	if reason, why := unfit(name, service); reason != "" {
		return st.as(stateServiceGone, reason, why)
	}
	st.service, st.serviceUID = name, service.UID
	return st.as(stateActive, "", "")
}

// leaving reports whether a Service needs no load balancer any more.
func leaving(s *corev1.Service) bool {
	return s.DeletionTimestamp != nil || s.Spec.Type != corev1.ServiceTypeLoadBalancer
}

func (s standing) as(is state, reason, why string) standing {
	s.state, s.reason, s.why = is, reason, why
	return s
}

// unfit says why a Service cannot fill a pool: nodes take traffic for its endpoints
// at its node ports alone.
func unfit(name poolupdate.ServiceName, service *corev1.Service) (reason, why string) {
	called := "Service " + key(name.Namespace, name.Name)
	switch {
	case service == nil:
		return v1alpha1.ReasonServiceNotFound, called + " does not exist"
	case service.DeletionTimestamp != nil:
		return v1alpha1.ReasonServiceNotFound, called + " is being deleted"
	case service.Spec.Type != corev1.ServiceTypeLoadBalancer && service.Spec.Type != corev1.ServiceTypeNodePort:
		return v1alpha1.ReasonServiceUnfit, fmt.Sprintf("%s has type %s and so no node ports; it needs type LoadBalancer or NodePort", called, service.Spec.Type)
	}
	return "", ""
}

// holder returns whose pool it is: the one with the most right to it, of these the one that
// took it, else that which Weir made, else the oldest, else the first by name. Nil if nobody has a claim.
func (s *snapshot) holder(pool lb.PoolID) *v1alpha1.BackendPool {
	var holder *v1alpha1.BackendPool
	var most right
	for _, p := range s.poolsAt(pool.Key()) {
		if p.DeletionTimestamp != nil && !s.taken(p) {
			continue
		}
		has, _ := s.right(p, pool)
		if has > most || has == most && holder != nil && s.claim(p, holder) < 0 {
			holder, most = p, has
		}
	}
	return holder
}

func (s *snapshot) claim(a, b *v1alpha1.BackendPool) int {
	for _, first := range []func(*v1alpha1.BackendPool) bool{s.taken, s.made} {
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

// selectorOf returns the selector of a pool of nodes; nil for any other.
func selectorOf(p *v1alpha1.BackendPool) (labels.Selector, error) {
	if p.Spec.Nodes == nil {
		return nil, nil //nolint:nilnil // a pool of a Service has none
	}
	return metav1.LabelSelectorAsSelector(&p.Spec.Nodes.Selector)
}
