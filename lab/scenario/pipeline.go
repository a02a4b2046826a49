// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// A pipelined update of several pools consists of one read and one accepted write per pool. A final
// read of the load balancer, after the last operation, gives the result of all.
//
// Begin implements poolupdate.Pipeline.

func (p *process) Begin(ctx context.Context, pool lb.Pool) (poolupdate.AcceptedWrite, error) {
	s, id := p.stage, pool.ID.LoadBalancer
	p.phase(pool.ID, "put")
	s.mu.Lock()
	p.starts(id, "by pool "+pool.ID.Name, true)
	k := s.pools[pool.ID.Key()]
	s.mu.Unlock()
	begun, err := p.client.Begin(ctx, pool)
	p.wrote(id)
	if p.isFormer() || k == nil {
		return begun, err
	}
	s.mu.Lock()
	k.together()
	if err == nil {
		p.begun[id.Key()] = append(p.begun[id.Key()], k)
	}
	s.mu.Unlock()
	if err != nil {
		return begun, err
	}
	end := begun.Wait
	begun.Wait = func(ctx context.Context, looks bool) (lb.Pool, error) {
		s.mu.Lock()
		p.following[id.Key()]++
		s.mu.Unlock()
		shown, err := end(ctx, looks)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.following[id.Key()]--
		if k.underWay() && k.attempt.together {
			k.attempt.known = err == nil
		}
		return shown, err
	}
	return begun, nil
}

// starts records the start of a load balancer write. Only pipelined writes may start while others
// are in progress. The caller holds s.mu.
func (p *process) starts(id lb.LoadBalancerID, by string, pipelined bool) {
	s := p.stage
	if p.writing[id.Key()]++; p.writing[id.Key()] > 1 || !pipelined && p.following[id.Key()] > 0 {
		s.journal.overlaps = append(s.journal.overlaps, id.Name+", "+by)
	}
}

// together marks a pool's attempt as part of a batch, void if the batch fails. The caller holds the
// stage's mu.
func (k *pool) together() {
	if a := k.attempt; a != nil {
		a.together, a.first = true, a.took
	}
}

// follows applies a load balancer read to all pools whose accepted writes are unresolved, and
// reports whether there are any. The caller holds s.mu.
func (p *process) follows(id lb.LoadBalancerID, j *joint) bool {
	begun := slices.DeleteFunc(p.begun[id.Key()], func(k *pool) bool { return !k.underWay() || !k.attempt.together })
	if p.begun[id.Key()] = begun; len(begun) == 0 {
		return false
	}
	j.pools, j.asked, j.phase, j.sent = slices.Clone(begun), nil, "check", 0
	return true
}
