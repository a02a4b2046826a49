// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// deleteUnneeded reads all load balancers and cleans up, as after a start.
func (s *stage) deleteUnneeded() {
	if _, err := s.process.balancers.ListOrphans(s.process.ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.say("leftovers: %v", err)
	}
	s.deleteKnown()
}

// orphans lists leftovers and cleans nothing up.
func (s *stage) orphans() (list string) {
	found, err := s.process.balancers.ListOrphans(s.process.ctx)
	for _, o := range found {
		list += fmt.Sprintf("%s, made for %s\n", o.Description, o.Service)
	}
	if err != nil {
		list += err.Error() + "\n"
	}
	return list
}

// deleteKnown cleans up what is known to be unneeded.
func (s *stage) deleteKnown() {
	p := s.process
	d, err := p.balancers.CleanUp(p.ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.say("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.dead {
		return
	}
	for _, e := range d.DrainingPools {
		s.trace("%s", e)
	}
	for _, name := range slices.Sorted(maps.Keys(s.backends)) {
		b := s.backends[name]
		if b.service == "" && slices.ContainsFunc(d.Missing, func(id lb.LoadBalancerID) bool { return id.Key() == b.id.LoadBalancer.Key() }) {
			s.trace("BackendPool %s is deleted", name)
			p.had[name] = true
			delete(s.backends, name)
			p.running.Go(func() { p.lanes.Forget(b.id) })
		}
	}
}

func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace(format, args...)
}
