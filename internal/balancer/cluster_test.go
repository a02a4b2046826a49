// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/sleep"
)

// record is what Kubernetes keeps of a Service: it outlives the process.
type record struct {
	service.Service
	namespaceLabels map[string]string
	rank            int
	deleted         bool
	// places is the finalizer and the annotation of places in one.
	places []string
	// groups are the resource groups that may have public IPs of it, recorded likewise.
	groups []string
	// links are the resource groups that may have Private Link Services of it, recorded likewise, and
	// owns is true if its status says that it owns one.
	links []string
	owns  bool
	// held is true if it is only rehearsed.
	held   bool
	status []netip.Addr
	// again is what a person wrote who wants a contest to be taken up again.
	again string
	// servedAt is when it last got what it wants.
	servedAt time.Time
}

// claim is what the process remembers of a Service; see the controller of Services.
type claim struct {
	owner       string
	busy, dirty bool // somebody looks at it, and has to look again
	running     bool // a request is under way
	sleeps      int  // how many will look later
	result      *balancer.Result
	level       *service.Spec
	// labels are those with which level was asked for, asked those of the last request.
	labels, asked map[string]string
	fails         int
	notBefore     time.Time
	told          string
	contests      []balancer.Contest
	// waits are the pools that have to be filled before it is asked for again, or waitsUntil.
	waits      []string
	waitsUntil time.Time
	// linked is what was said last of its Private Link Service.
	linked string
	// holds is whom the security group admits at most; closing is what it is closed to, and not before closesAt.
	holds    *service.Restriction
	closing  service.Restriction
	closesAt time.Time
	unclosed string // the last error of that
	// empties is true while interfaces have to leave what it has left, and it is asked again by waitsUntil.
	empties bool
}

// apply creates or changes a Service, and has the process look at it.
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

// remove deletes a Service: it goes when nothing of it is left.
func (s *stage) remove(name string) {
	s.mu.Lock()
	if r := s.services[name]; r != nil {
		r.deleted = true
	}
	s.mu.Unlock()
	s.process.kick(name)
}

// kick has somebody look at a Service.
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
		if sleep.For(p.ctx, apart(rank)) != nil {
			continue
		}
		again, err := p.reconcile(name, r, cl)
		s.mu.Lock()
		switch {
		case err != nil:
			cl.fails++
			p.later(name, cl, min(5*time.Millisecond<<min(cl.fails-1, 20), 1000*time.Second))
		case again > 0:
			p.later(name, cl, again)
		}
		s.mu.Unlock()
	}
}

// apart is how long a Service waits so that no two go on in the same instant: which of them
// would be first is up to the scheduler.
func apart(rank int) time.Duration { return time.Duration(rank) * time.Microsecond }

// later looks again after a while. The caller holds s.mu.
func (p *process) later(name string, cl *claim, d time.Duration) {
	if p.dead {
		return
	}
	cl.sleeps++
	p.running.Go(func() {
		slept := sleep.For(p.ctx, d) == nil
		p.stage.mu.Lock()
		cl.sleeps--
		p.stage.mu.Unlock()
		if slept {
			p.kick(name)
		}
	})
}

// inTurn has Services go on in their order: who waits for the first list goes on in one instant,
// and the first has the place.
func (p *process) inTurn(r *record) {
	_, _ = p.balancers.NodePlaces(p.ctx) // Locate meets the same error
	_ = sleep.For(p.ctx, apart(r.rank))
}

// reconcile does what kube's reconcileBalanced does.
func (p *process) reconcile(name string, r *record, cl *claim) (again time.Duration, err error) {
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
		w, problems := service.Desired(spec, s.settings.Settings)
		if len(problems) > 0 {
			cl.level = nil
			for _, problem := range problems {
				s.tell(name, cl, problem.Error())
			}
			return 0, nil
		}
		if desired = &w; cl.level != nil && reflect.DeepEqual(*cl.level, w) && maps.Equal(cl.labels, spec.Labels) && !cl.empties {
			return 0, nil
		}
	}
	several := len(s.settings.Configurations) > 1
	s.mu.Unlock() // time may pass
	if several {
		p.inTurn(r)
	}
	on, leave, err := p.balancers.Locate(p.ctx, balancer.Placing{
		Service: name, Owner: spec.Owner(), Labels: spec.Labels, NamespaceLabels: labels, Desired: desired, Recorded: places,
	})
	_ = sleep.For(p.ctx, apart(r.rank)) // whoever waited for the same list goes on in the same instant
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
	for _, was := range places { // what is not the cluster's any more stays on record until all is there
		if !slices.Contains(r.places, was) {
			r.places = append(r.places, was)
		}
	}
	req := balancer.Request{Service: name, Owner: spec.Owner(), OwnPools: spec.OwnPools(), Desired: desired, Shown: r.status, Again: r.again, Spare: s.spares, Recorded: places}
	req.DeleteUnused = spec.Annotations[service.AllowRemoval] == "true"
	req.HeldPools = s.held(name)
	req.MadePools = req.HeldPools
	if on != "" {
		req.On = p.balancers.ID(on)
	}
	for _, l := range leave {
		req.Leave = append(req.Leave, p.balancers.ID(l))
	}
	cl.running, cl.owner, cl.asked = true, spec.Owner(), spec.Labels
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
	p.balancers.Ensure(req)
	return 0, nil
}

// closes closes the security group to clients whom a Service does not admit any more, and reports whether that is under
// way. The caller holds s.mu.
func (p *process) closes(name string, r *record, cl *claim) bool {
	is := service.RestrictionOf(r.Service)
	if p.stage.settings.SecurityGroup.Name == "" || r.deleted || len(r.places) == 0 || is.IsOpen() || cl.holds != nil && cl.holds.IsWithin(is) || time.Now().Before(cl.closesAt) {
		return false
	}
	if cl.holds == nil && !is.Access.Limited() && !slices.ContainsFunc(r.places, func(place string) bool { return !service.IsInternal(place) }) {
		return false
	}
	cl.running, cl.owner, cl.closing = true, r.Owner(), is
	p.balancers.Ensure(balancer.Request{
		Service: name, Owner: r.Owner(), Shown: r.status, Groups: slices.Clone(r.groups), Again: r.again,
		Desired: &service.Spec{Owner: r.Owner(), Internal: is.Internal, Access: is.Access}, Closes: true,
	})
	return true
}

// groupsOf are the resource groups of the public IPs that are made for a Service.
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
