// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"net/netip"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// changeVerb changes a pool's members, like an endpoint change of a Service. The Service has the
// pool's name unless given; several may share a pool:
//
//	change BALANCER/POOL wants=(NODE=IP, …) [service=NAMESPACE/NAME]
func changeVerb(s *stage, c *command) {
	id := c.pool(c.word())
	service := schedule.ServiceName{Namespace: "shop", Name: id.Name}
	if given, ok := c.value("service"); ok {
		service = c.service(given)
	}
	wants := c.addresses("wants")
	op := schedule.Operation{Ref: refOf(service), Pool: id, Service: service}
	s.set(func() {
		s.wanted[id.Key()] = wants
		s.services[service] = id.Key()
		// The laws identify operations by this time, so it is unique.
		s.changes++
		op.ChangedAt = time.Now().Add(time.Duration(s.changes))
	})
	s.lanes.Add(op)
}

// goneVerb deletes a Service without notifying the workers:
//
//	gone NAMESPACE/NAME
func goneVerb(s *stage, c *command) {
	service := c.service(c.word())
	s.set(func() { delete(s.services, service) })
}

// moveVerb moves a Service to another pool without notifying the workers:
//
//	move NAMESPACE/NAME to=BALANCER/POOL
func moveVerb(s *stage, c *command) {
	service := c.service(c.word())
	to, _ := c.value("to")
	id := c.pool(to)
	s.set(func() { s.services[service] = id.Key() })
}

// removeServiceVerb calls RemoveService:
//
//	remove-service NAMESPACE/NAME
func removeServiceVerb(s *stage, c *command) {
	service := c.service(c.word())
	n := s.lanes.RemoveService(service)
	s.list("%d removed", n)
	s.set(func() { s.laws.removed(service) })
}

// refOf returns the BackendPool of a Service, which has its name.
func refOf(service schedule.ServiceName) schedule.Ref {
	return schedule.Ref{Namespace: service.Namespace, Name: service.Name, UID: "of " + service.Name}
}

// poolOf returns the pool of a BackendPool. The caller holds s.mu.
func (s *stage) poolOf(ref schedule.Ref) lb.PoolKey {
	return s.services[schedule.ServiceName{Namespace: ref.Namespace, Name: ref.Name}]
}

// IsNeeded implements Cluster: the Service exists and uses the pool.
func (s *stage) IsNeeded(op schedule.Operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopAtRecheck && !s.stopped && s.laws.wrote(op.Pool) {
		s.stopNow()
	}
	relevant := s.services[op.Service] == op.Pool.Key()
	s.laws.asked(op, relevant)
	return relevant
}

// DesiredPool implements Cluster. Weir made every pool, so what it finds on takeover is managed.
func (s *stage) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written, taken := s.ledger[s.poolOf(ref)]
	return diff.Desired{
		Addresses: s.wanted[s.poolOf(ref)], IsOwnAddress: func(netip.Addr) bool { return true },
		Record: diff.Record{Written: written, Adopted: taken},
	}, nil
}

// Record implements Ledger.
func (s *stage) Record(_ context.Context, ref schedule.Ref, in diff.Intent) error {
	s.set(func() { s.ledger[s.poolOf(ref)] = in.Written })
	return nil
}
