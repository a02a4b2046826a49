// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/updater"
)

// A pipelined update of several pools consists of one read and one accepted write per pool. A final
// read of the load balancer, after the last operation, gives the result of all.
//
// Begin implements updater.Pipeline.

func (p *process) Begin(ctx context.Context, pool lb.Pool) (updater.AcceptedWrite, error) {
	s, id := p.stage, pool.ID.LoadBalancer
	p.setPhase(pool.ID, "put")
	s.mu.Lock()
	p.recordWriteStart(id, "by pool "+pool.ID.Name, true)
	k := s.pools[pool.ID.Key()]
	s.mu.Unlock()
	begun, err := p.client.Begin(ctx, pool)
	p.recordWrite(id)
	if p.hasSuccessor() || k == nil {
		return begun, err
	}
	s.mu.Lock()
	k.joinBatch()
	if err == nil {
		p.acceptedWrites[id.Key()] = append(p.acceptedWrites[id.Key()], k)
	}
	s.mu.Unlock()
	if err != nil {
		return begun, err
	}
	end := begun.Wait
	begun.Wait = func(ctx context.Context, looks bool) (lb.Pool, error) {
		s.mu.Lock()
		p.awaitedWrites[id.Key()]++
		s.mu.Unlock()
		if looks { // the last of a group: it is polled after the one before, not at the same instant
			time.Sleep(time.Microsecond)
		}
		shown, err := end(ctx, looks)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.awaitedWrites[id.Key()]--
		if k.isAttempted() && k.attempt.inBatch {
			k.attempt.hasResponse = err == nil
		}
		return shown, err
	}
	return begun, nil
}

// recordWriteStart records the start of a load balancer write. Only pipelined writes may start while others
// are in progress. The caller holds s.mu.
func (p *process) recordWriteStart(id lb.LoadBalancerID, by string, pipelined bool) {
	s := p.stage
	if p.activeWrites[id.Key()]++; p.activeWrites[id.Key()] > 1 || !pipelined && p.awaitedWrites[id.Key()] > 0 {
		s.history.overlaps = append(s.history.overlaps, id.Name+", "+by)
	}
}

// joinBatch marks a pool's attempt as part of a batch, void if the batch fails. The caller holds the
// stage's mu.
func (p *pool) joinBatch() {
	if a := p.attempt; a != nil {
		a.inBatch, a.firstQueuedAt = true, a.dequeuedAt
	}
}

// resolveBatch applies a load balancer read to all pools with unresolved accepted writes, and
// reports whether there are any. The caller holds s.mu.
func (p *process) resolveBatch(id lb.LoadBalancerID, j *batch) bool {
	begun := slices.DeleteFunc(p.acceptedWrites[id.Key()], func(k *pool) bool { return !k.isAttempted() || !k.attempt.inBatch })
	if p.acceptedWrites[id.Key()] = begun; len(begun) == 0 {
		return false
	}
	j.pools, j.queried, j.phase, j.sent = slices.Clone(begun), nil, "check", 0
	return true
}
