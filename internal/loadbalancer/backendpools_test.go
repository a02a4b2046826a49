// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

// backendPool is the BackendPool in Kubernetes with its record; it survives the process. Only a stage with
// pools has them.
type backendPool struct {
	ref      schedule.Ref
	id       lb.PoolID
	pool     service.Pool
	service  string // empty for a pool of nodes
	recorded diff.Record
	deleting bool
}

// pools implements the pool updater's view of the stage for one process.
type pools struct{ process *process }

func (p pools) stage() *stage { return p.process.stage }

// of returns a BackendPool. The caller holds s.mu.
func (p pools) of(ref schedule.Ref) *backendPool {
	b := p.stage().backends[ref.Name]
	if b == nil || b.ref != ref || p.process.dead {
		return nil
	}
	return b
}

// members returns the desired members of a pool. The caller holds s.mu.
func (s *stage) members(pool service.Pool) []lb.Address {
	nodes := []lb.Address{{Name: "n1", IP: netip.MustParseAddr("10.0.9.1")}, {Name: "n2", IP: netip.MustParseAddr("10.0.9.2")}}
	if pool.Family == lb.IPv6 {
		nodes[0].IP, nodes[1].IP = netip.MustParseAddr("fd00::9:1"), netip.MustParseAddr("fd00::9:2")
	}
	for i, n := range nodes {
		if s.draining[n.Name] {
			nodes[i].AdminState = lb.Down
		}
	}
	if !pool.Shared {
		return nodes[:1]
	}
	return nodes
}

func (p pools) IsNeeded(op schedule.Operation) bool {
	p.stage().mu.Lock()
	defer p.stage().mu.Unlock()
	return p.of(op.Ref) != nil
}

var errNoBackendPool = errors.New("the BackendPool is gone")

func (p pools) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	p.stage().mu.Lock()
	defer p.stage().mu.Unlock()
	b := p.of(ref)
	if b == nil {
		return diff.Desired{}, errNoBackendPool
	}
	known := p.process.had[ref.Name] || p.process.balancers.LeftToOthers(b.id.Key())
	d := diff.Desired{IsOwnAddress: func(ip netip.Addr) bool { return !known || slices.Contains(p.stage().nodes, ip) }, IsExclusive: true, Record: b.recorded}
	if !b.deleting {
		d.Addresses = p.stage().members(b.pool)
	}
	return d, nil
}

func (p pools) Record(_ context.Context, ref schedule.Ref, in diff.Intent) error {
	p.stage().mu.Lock()
	defer p.stage().mu.Unlock()
	b := p.of(ref)
	if b == nil {
		return errNoBackendPool
	}
	b.recorded = diff.Record{Written: slices.Clone(in.Written), Down: slices.Clone(in.Down), Adopted: true}
	return nil
}

func (p pools) ReportWait(updater.Waiting) {}

func (p pools) Report(_ context.Context, r updater.Report) {
	s := p.stage()
	s.mu.Lock()
	b := p.of(r.Ref)
	forget := b != nil && b.deleting && (r.Outcome == diff.Stale || r.InSync && len(r.Written) == 0)
	switch {
	case b == nil:
	case forget:
		p.process.had[r.Ref.Name] = true
		delete(s.backends, r.Ref.Name)
	case r.InSync:
		b.recorded = diff.Record{Written: slices.Clone(r.Written), Down: slices.Clone(r.Down), Adopted: true}
	}
	second := r.Outcome == diff.Stale && b != nil && !b.deleting && !p.process.dead
	if second {
		p.process.missing++
	}
	s.mu.Unlock()
	if r.InSync {
		p.process.filled(r.Pool)
	}
	if second {
		p.process.running.Go(func() { p.lookAgain(b) })
	}
	if forget {
		p.process.running.Go(func() { p.process.lanes.Forget(r.Pool) })
	}
}

// lookAgain retries a pool that did not exist.
func (p pools) lookAgain(b *backendPool) {
	ok := ratelimit.Sleep(p.process.ctx, 5*time.Minute) == nil
	p.stage().mu.Lock()
	p.process.missing--
	p.stage().mu.Unlock()
	if ok {
		p.process.lanes.Add(schedule.Operation{Ref: b.ref, Pool: b.id})
	}
}

// makePools creates the BackendPools of a Service and returns their names. The caller holds s.mu.
func (p *process) makePools(res loadbalancer.Result) (needed map[string]bool) {
	s := p.stage
	needed = map[string]bool{}
	if res.Desired == nil {
		return needed
	}
	for _, pool := range res.Pools {
		b := &backendPool{id: lb.PoolID{LoadBalancer: res.On, Name: pool.Name}, pool: pool, service: res.Service}
		if pool.Shared {
			b.service = ""
		}
		name := res.On.Name + "/" + pool.Name
		needed[name] = true
		if got := s.backends[name]; got == nil || got.deleting {
			s.uids++
			b.ref = schedule.Ref{Namespace: "default", Name: name, UID: fmt.Sprint(s.uids)}
			s.backends[name] = b
			p.lanes.Add(schedule.Operation{Ref: b.ref, Pool: b.id, ChangedAt: time.Now(), FillsPool: true})
		}
	}
	return needed
}

// fillFirst creates BackendPools that must fill before flows move; a filled one requeues the Service. The
// caller holds s.mu.
func (p *process) fillFirst(name string, cl *claim, res loadbalancer.Result) {
	var waits []string
	for _, id := range res.FillingPools {
		waits = append(waits, id.LoadBalancer.Name+"/"+id.Name)
	}
	p.stage.trace("%s: keeps what it has until %s is filled", name, strings.Join(waits, ", "))
	cl.inSync, cl.waits, cl.waitsUntil = nil, waits, time.Now().Add(30*time.Second)
	p.makePools(res)
	p.later(name, cl, 30*time.Second)
}

// filled requeues the Services that wait for a pool.
func (p *process) filled(pool lb.PoolID) {
	s := p.stage
	s.mu.Lock()
	var names []string
	for name, cl := range p.claims {
		if slices.Contains(cl.waits, pool.LoadBalancer.Name+"/"+pool.Name) {
			cl.waits, cl.waitsUntil = nil, time.Time{}
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		p.kick(name)
	}
}

// keepPools creates the BackendPools of a Service in sync and deletes its former ones. The caller holds s.mu.
func (p *process) keepPools(res loadbalancer.Result) {
	s := p.stage
	if s.backends == nil {
		return
	}
	needed := p.makePools(res)
	for _, name := range slices.Sorted(maps.Keys(s.backends)) {
		b := s.backends[name]
		switch {
		case b.service == res.Service && slices.ContainsFunc(res.MissingPools, func(id lb.PoolID) bool { return id.Key() == b.id.Key() }),
			b.service == "" && slices.ContainsFunc(res.DeletedLoadBalancers, func(id lb.LoadBalancerID) bool { return id.Key() == b.id.LoadBalancer.Key() }):
			p.had[name] = true
			delete(s.backends, name)
			p.running.Go(func() { p.lanes.Forget(b.id) })
		case b.service == res.Service && !needed[name]:
			b.deleting = true
			p.lanes.Add(schedule.Operation{Ref: b.ref, Pool: b.id, ChangedAt: time.Now()})
		}
	}
}

// lookAtPools queues all pools after a start.
func (p *process) lookAtPools() {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.stage.backends)) {
		b := p.stage.backends[name]
		p.lanes.Add(schedule.Operation{Ref: b.ref, Pool: b.id})
	}
}

// taint starts or stops draining a node.
func (s *stage) taint(node string, drains bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining[node] == drains || s.process.dead {
		s.draining[node] = drains
		return
	}
	s.draining[node] = drains
	for _, name := range slices.Sorted(maps.Keys(s.backends)) {
		if b := s.backends[name]; !b.deleting {
			s.process.lanes.Add(schedule.Operation{Ref: b.ref, Pool: b.id, Admin: true, ChangedAt: time.Now()})
		}
	}
}

func (p *process) ForeignMembers(_ context.Context, pool lb.Pool) ([]string, error) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if pool.NIC {
		return s.foreignInterfaces(pool), nil
	}
	if s.backends == nil {
		return nil, nil
	}
	name := pool.ID.LoadBalancer.Name + "/" + pool.ID.Name
	b := s.backends[name]
	own := s.nodes
	switch {
	case b != nil && b.recorded.Adopted:
		own = b.recorded.Written
	case b != nil && !p.had[name] && !p.balancers.LeftToOthers(b.id.Key()):
		return nil, nil // all members become Weir's
	}
	var foreign []string
	for _, a := range pool.Addresses {
		if !slices.Contains(own, a.IP) {
			foreign = append(foreign, a.IP.String())
		}
	}
	return foreign, nil
}

// foreignInterfaces returns the interfaces of a pool that do not belong to a node (n1, n2, ...).
func (s *stage) foreignInterfaces(pool lb.Pool) []string {
	var foreign []string
	for _, a := range pool.Addresses {
		if name := strings.Split(a.Interface, "/")[8]; !strings.HasPrefix(name, "n") {
			foreign = append(foreign, name)
		} else if !strings.HasSuffix(a.Machine, "/"+strings.ToLower(name)) {
			panic("nobody has asked whose " + a.Interface + " is")
		}
	}
	return foreign
}

// HasManagedPool implements loadbalancer.Cluster. In a stage of interfaces, scripts make them join and leave.
func (p *process) HasManagedPool(pool lb.PoolID) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filled[pool.LoadBalancer.Name+"/"+pool.Name]
}

func (p *process) HasBackendPool(pool lb.PoolID) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backends[pool.LoadBalancer.Name+"/"+pool.Name] != nil
}

// held returns a Service's own pools with BackendPools, on any load balancer. The caller holds s.mu.
func (s *stage) held(name string) []lb.PoolID {
	var pools []lb.PoolID
	for _, of := range slices.Sorted(maps.Keys(s.backends)) {
		if b := s.backends[of]; b.service == name {
			pools = append(pools, b.id)
		}
	}
	return pools
}
