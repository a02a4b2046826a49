// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"net/netip"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// changeVerb gives a pool other members, as an endpoint change of a Service does. The
// Service bears the pool's name unless it is named; several may feed one pool.
//
//	change BALANCER/POOL wants=(NODE=IP, …) [service=NAMESPACE/NAME]
func changeVerb(s *stage, c *command) {
	id := c.pool(c.word())
	service := poolschedule.ServiceName{Namespace: "shop", Name: id.Name}
	if given, ok := c.value("service"); ok {
		service = c.service(given)
	}
	wants := c.addresses("wants")
	op := poolschedule.Operation{Ref: refOf(service), Pool: id, Service: service}
	s.set(func() {
		s.wanted[id.Key()] = wants
		s.services[service] = id.Key()
		// The laws tell operations apart by this time, so no two are alike.
		s.changes++
		op.ChangedAt = time.Now().Add(time.Duration(s.changes))
	})
	s.lanes.Add(op)
}

// goneVerb removes a Service from the cluster. The lanes are not told.
//
//	gone NAMESPACE/NAME
func goneVerb(s *stage, c *command) {
	service := c.service(c.word())
	s.set(func() { delete(s.services, service) })
}

// moveVerb makes a Service feed another pool. The lanes are not told.
//
//	move NAMESPACE/NAME to=BALANCER/POOL
func moveVerb(s *stage, c *command) {
	service := c.service(c.word())
	to, _ := c.value("to")
	id := c.pool(to)
	s.set(func() { s.services[service] = id.Key() })
}

// removeServiceVerb tells the lanes that nothing is to be done for a Service any more.
//
//	remove-service NAMESPACE/NAME
func removeServiceVerb(s *stage, c *command) {
	service := c.service(c.word())
	n := s.lanes.RemoveService(service)
	s.list("%d removed", n)
	s.set(func() { s.laws.removed(service) })
}

// refOf names the BackendPool of a Service: it has the Service's name.
func refOf(service poolschedule.ServiceName) poolschedule.Ref {
	return poolschedule.Ref{Namespace: service.Namespace, Name: service.Name, UID: "of " + service.Name}
}

// poolOf returns the pool that a BackendPool stands for. The caller holds s.mu.
func (s *stage) poolOf(ref poolschedule.Ref) lb.PoolKey {
	return s.services[poolschedule.ServiceName{Namespace: ref.Namespace, Name: ref.Name}]
}

// Relevant implements Cluster: an operation serves somebody while its Service is there
// and feeds its pool.
func (s *stage) Relevant(op poolschedule.Operation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopAtRecheck && !s.stopped && s.laws.wrote(op.Pool) {
		s.stopNow()
	}
	relevant := s.services[op.Service] == op.Pool.Key()
	s.laws.asked(op, relevant)
	return relevant
}

// Desired implements Cluster. Weir made every pool of the stage, so what it finds there
// when it first takes one is ours.
func (s *stage) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written, taken := s.ledger[s.poolOf(ref)]
	return poolwrite.Desired{
		Addresses: s.wanted[s.poolOf(ref)], Ours: func(netip.Addr) bool { return true },
		Recorded: poolwrite.Recorded{Written: written, Taken: taken},
	}, nil
}

// Record implements Ledger.
func (s *stage) Record(_ context.Context, ref poolschedule.Ref, in poolwrite.Intent) error {
	s.set(func() { s.ledger[s.poolOf(ref)] = in.Written })
	return nil
}
