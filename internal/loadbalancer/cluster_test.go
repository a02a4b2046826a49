// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

// record is the Service in Kubernetes; it survives the process.
type record struct {
	service.Service
	namespaceLabels map[string]string
	rank            int
	deleted         bool
	// places combines the finalizer and the annotation of load balancers.
	places []string
	// groups are the recorded resource groups of public IPs.
	groups []string
	// links are the recorded resource groups of Private Link Services; owns is set if the status reports one.
	links []string
	owns  bool
	// held marks a dry run.
	held   bool
	status []netip.Addr
	// again is the user's retry token for a conflict.
	again string
	// servedAt is when it was last in sync.
	servedAt time.Time
}

// claim is the in-memory state of a Service, as in the Service controller.
type claim struct {
	owner       string
	busy, dirty bool // being reconciled, and must be reconciled again
	running     bool // a request is running
	sleeps      int  // number of delayed reconciles
	result      *loadbalancer.Result
	inSync      *service.Spec
	// labels are of the state in sync, asked of the last request.
	labels, asked map[string]string
	fails         int
	notBefore     time.Time
	told          string
	contests      []loadbalancer.Conflict
	// waits are the pools that must fill, until waitsUntil.
	waits      []string
	waitsUntil time.Time
	// linked is the last reported Private Link state.
	linked string
	// holds is the upper bound of admitted clients. closing is the restriction to apply, not before closesAt.
	holds    *service.Restriction
	closing  service.Restriction
	closesAt time.Time
	unclosed string // the last error of closing
	// empties is set while interfaces must leave; retried at waitsUntil.
	empties bool
}

// apply creates or changes a Service and reconciles it.
func (s *stage) apply(name string, spec service.Service, namespaceLabels map[string]string) {
	s.mu.Lock()
	r := s.services[name]
	if r == nil {
		s.uids++
		r = &record{rank: s.uids}
		s.services[name] = r
		if spec.UID == "" {
			spec.UID = fmt.Sprintf("%03x", s.uids)
		}
	} else {
		spec.UID = r.UID
	}
	spec.Namespace, spec.Name, _ = strings.Cut(name, "/")
	r.Service, r.namespaceLabels = spec, namespaceLabels
	if cl := s.process.claims[name]; cl != nil {
		cl.waits, cl.waitsUntil = nil, time.Time{}
	}
	s.mu.Unlock()
	s.process.kick(name)
}

// remove deletes a Service; it disappears once nothing is left.
func (s *stage) remove(name string) {
	s.mu.Lock()
	if r := s.services[name]; r != nil {
		r.deleted = true
	}
	s.mu.Unlock()
	s.process.kick(name)
}

// kick starts a reconcile of a Service.
func (p *process) kick(name string) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	if p.dead {
		return
	}
	cl := p.claims[name]
	if cl == nil {
		cl = &claim{}
		p.claims[name] = cl
	}
	cl.dirty = true
	if !cl.busy {
		cl.busy = true
		p.running.Go(func() { p.work(name, cl) })
	}
}

func (p *process) work(name string, cl *claim) {
	s := p.stage
	for {
		s.mu.Lock()
		r := s.services[name]
		if !cl.dirty || p.dead || r == nil {
			cl.busy = false
			s.mu.Unlock()
			return
		}
		cl.dirty = false
		rank := r.rank
		s.mu.Unlock()
		if ratelimit.Sleep(p.ctx, apart(rank)) != nil {
			continue
		}
		recheckAfter, err := p.reconcile(name, r, cl)
		s.mu.Lock()
		switch {
		case err != nil:
			cl.fails++
			p.later(name, cl, min(5*time.Millisecond<<min(cl.fails-1, 20), 1000*time.Second))
		case recheckAfter > 0:
			p.later(name, cl, recheckAfter)
		}
		s.mu.Unlock()
	}
}

// apart spreads Services over distinct instants, so that their order does not depend on the scheduler.
func apart(rank int) time.Duration { return time.Duration(rank) * time.Microsecond }

// later reconciles after a delay. The caller holds s.mu.
func (p *process) later(name string, cl *claim, d time.Duration) {
	if p.dead {
		return
	}
	cl.sleeps++
	p.running.Go(func() {
		slept := ratelimit.Sleep(p.ctx, d) == nil
		p.stage.mu.Lock()
		cl.sleeps--
		p.stage.mu.Unlock()
		if slept {
			p.kick(name)
		}
	})
}

// inTurn orders Services that wait for the first list: the first gets the place.
func (p *process) inTurn(r *record) {
	_, _ = p.balancers.NodeConfigurations(p.ctx) // Locate returns the same error
	_ = ratelimit.Sleep(p.ctx, apart(r.rank))
}

// reconcile does what Reconcile of package services does.
func (p *process) reconcile(name string, r *record, cl *claim) (recheckAfter time.Duration, err error) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if cl.running {
		return 0, nil
	}
	if res := cl.result; res != nil {
		cl.result = nil
		if err := p.note(name, r, cl, *res); err != nil {
			return 0, err
		}
		if s.services[name] == nil {
			return 0, nil
		}
	}
	if p.closes(name, r, cl) {
		return 0, nil
	}
	if wait := time.Until(cl.notBefore); wait > 0 {
		return wait, nil
	}
	if time.Until(cl.waitsUntil) > 0 && (!r.deleted || cl.empties) {
		return 0, nil
	}
	spec, places, labels := r.Service, slices.Clone(r.places), r.namespaceLabels
	var desired *service.Spec
	if !r.deleted {
		w, problems := service.BuildSpec(spec, s.settings.Settings)
		if len(problems) > 0 {
			cl.inSync = nil
			for _, problem := range problems {
				s.tell(name, cl, problem.Error())
			}
			return 0, nil
		}
		if desired = &w; cl.inSync != nil && reflect.DeepEqual(*cl.inSync, w) && maps.Equal(cl.labels, spec.Labels) && !cl.empties {
			return 0, nil
		}
	}
	several := len(s.settings.Configurations) > 1
	s.mu.Unlock() // time may pass
	if several {
		p.inTurn(r)
	}
	on, leave, err := p.balancers.FindPlacement(p.ctx, loadbalancer.PlacementRequest{
		Service: name, Owner: spec.OwnerName(), Labels: spec.Labels, NamespaceLabels: labels, Desired: desired, LoadBalancers: places,
	})
	_ = ratelimit.Sleep(p.ctx, apart(r.rank)) // Services that waited for the same list continue at the same instant
	s.mu.Lock()
	if p.dead {
		return 0, nil
	}
	if err != nil {
		return 0, p.failed(name, cl, err)
	}
	if on == "" && len(leave) == 0 {
		s.release(name, cl)
		return 0, nil
	}
	r.places = leave
	if on != "" {
		r.places = append([]string{on}, leave...)
	}
	for _, before := range places { // load balancers of other clusters stay recorded until all is in place
		if !slices.Contains(r.places, before) {
			r.places = append(r.places, before)
		}
	}
	req := loadbalancer.Request{Service: name, Owner: spec.OwnerName(), DedicatedPools: spec.DedicatedPools(), Desired: desired, StatusAddresses: r.status, RetryToken: r.again, ProtectAddresses: s.spares, LoadBalancers: places}
	req.DeleteUnused = spec.Annotations[service.AllowRemoval] == "true"
	req.Retain = spec.RetainsAddress(s.settings.Settings)
	req.RecordedPools = s.held(name)
	req.ManagedPools = req.RecordedPools
	if on != "" {
		req.On = p.balancers.ID(on)
	}
	for _, l := range leave {
		req.RemoveFrom = append(req.RemoveFrom, p.balancers.ID(l))
	}
	cl.running, cl.owner, cl.asked = true, spec.OwnerName(), spec.Labels
	for _, g := range groupsOf(desired) {
		if !slices.Contains(r.groups, g) {
			r.groups = append(r.groups, g)
		}
	}
	req.Groups = slices.Clone(r.groups)
	for _, g := range s.linkGroupsOf(desired) {
		if !slices.Contains(r.links, g) {
			r.links = append(r.links, g)
		}
	}
	req.LinkGroups = slices.Clone(r.links)
	if desired != nil && cl.holds != nil && !desired.Restriction().IsWithin(*cl.holds) {
		cl.holds = nil
	}
	p.balancers.EnsureLoadBalancer(req)
	return 0, nil
}

// closes closes the security group to clients the Service no longer admits and reports whether that is in
// progress. The caller holds s.mu.
func (p *process) closes(name string, r *record, cl *claim) bool {
	restriction := service.RestrictionOf(r.Service)
	if p.stage.settings.SecurityGroup.Name == "" || r.deleted || len(r.places) == 0 || restriction.IsOpen() || cl.holds != nil && cl.holds.IsWithin(restriction) || time.Now().Before(cl.closesAt) {
		return false
	}
	if cl.holds == nil && !restriction.Access.IsLimited() && !slices.ContainsFunc(r.places, func(place string) bool { return !service.IsInternal(place) }) {
		return false
	}
	cl.running, cl.owner, cl.closing = true, r.OwnerName(), restriction
	p.balancers.EnsureLoadBalancer(loadbalancer.Request{
		Service: name, Owner: r.OwnerName(), StatusAddresses: r.status, Groups: slices.Clone(r.groups), RetryToken: r.again,
		Desired: &service.Spec{Owner: r.OwnerName(), Internal: restriction.Internal, Access: restriction.Access}, CloseOnly: true,
	})
	return true
}

// groupsOf returns the resource groups of public IPs made for a Service.
func groupsOf(w *service.Spec) []string {
	var groups []string
	if w == nil {
		return nil
	}
	for _, f := range w.Frontends {
		if f.PublicIP != nil && !slices.Contains(groups, f.PublicIP.ID.ResourceGroup) {
			groups = append(groups, f.PublicIP.ID.ResourceGroup)
		}
	}
	return groups
}
