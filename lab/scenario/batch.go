// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// batch is an attempt of several pools with one load balancer write. Its pools are those of the
// operations that the process queried.
type batch struct {
	queried []*pool
	pools   []*pool
	phase   string
	sent    int
	// isAnswered: the process has the last response and is resolving the pools or recording its next
	// write.
	isAnswered bool
}

// batchOf returns the joint attempt on a load balancer. The caller holds s.mu.
func (s *Stage) batchOf(id lb.LoadBalancerID) *batch {
	j := s.batches[id.Key()]
	if j == nil {
		j = &batch{}
		s.batches[id.Key()] = j
	}
	return j
}

func (p *process) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	s := p.stage
	if p.hasSuccessor() {
		return p.client.GetLoadBalancer(ctx, id)
	}
	s.mu.Lock()
	j, mending := s.batchOf(id), s.repairAttempt(id)
	switch {
	case p.resolveBatch(id, j):
	case len(j.queried) > 0 && !p.killed:
		s.beginBatch(j)
	case mending != nil:
		j.pools, j.phase, j.sent = nil, "check", 0
	default:
		j.phase, j.sent = "check", 0
	}
	j.isAnswered = false
	s.mu.Unlock()
	read, err := p.client.GetLoadBalancer(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	j.isAnswered = err == nil
	for _, k := range s.callPools(call{joint: j}) {
		k.attempt.isRead = k.attempt.inBatch && k.attempt.phase == "get"
	}
	if mending != nil {
		mending.isRepair = err == nil && read.Provisioning == lb.Failed
	}
	return read, err
}

// answeredBatches returns the pools of batched updates with the last response received. The caller
// holds s.mu.
func (s *Stage) answeredBatches() map[lb.PoolKey]bool {
	known := map[lb.PoolKey]bool{}
	for key, k := range s.pools {
		if k.isAttempted() && k.attempt.hasResponse {
			known[key] = true
		}
	}
	for _, j := range s.batches {
		if !j.isAnswered {
			continue
		}
		for _, k := range s.callPools(call{joint: j}) {
			if k.attempt.inBatch {
				known[k.id.Key()] = true
			}
		}
	}
	return known
}

// repairAttempt returns the single-pool attempt that repairs its Failed load balancer, or nil. Responses it
// gets are not about a pool. The caller holds s.mu.
func (s *Stage) repairAttempt(id lb.LoadBalancerID) *attempt {
	for _, k := range s.poolsOf(id) {
		if k.isAttempted() && k.attempt.phase == "put" && k.lastAnswer.parentFailed {
			return k.attempt
		}
	}
	return nil
}

// beginBatch begins an attempt for all queried pools. The caller holds s.mu.
func (s *Stage) beginBatch(j *batch) {
	j.pools, j.queried, j.phase, j.sent = j.queried, nil, "get", 0
	now := time.Now()
	s.history.earlyAttempts = append(s.history.earlyAttempts, s.checkGates(j.pools[0], now)...)
	for _, k := range j.pools {
		k.requeueBatch()
	}
	s.overtakenChange(j.pools...)
	for _, k := range j.pools {
		if k.retryAt.After(now) && !k.adminQueued {
			s.history.earlyAttempts = append(s.history.earlyAttempts, fmt.Sprintf("%s is tried again at %s, and not at %s", k.id.Name, s.formatTime(now), s.formatTime(k.retryAt)))
		}
		first := k.firstQueuedAt
		if a := k.attempt; first.IsZero() && a != nil && a.inBatch { // read once more
			first = a.firstQueuedAt
		}
		k.attempt, k.lastAnswer = &attempt{added: k.operations, adminQueued: k.adminQueued, phase: "get", firstQueuedAt: first, inBatch: true}, response{}
		k.startedAt, k.queuedAt, k.firstQueuedAt, k.deferredAt, k.adminQueued = now, time.Time{}, time.Time{}, time.Time{}, false
	}
}

func (p *process) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	s := p.stage
	if p.hasSuccessor() {
		return p.client.PutLoadBalancer(ctx, b)
	}
	s.mu.Lock()
	j := s.batchOf(b.ID)
	j.queried, j.phase, j.sent, j.isAnswered = nil, "put", 0, false
	mending := s.repairAttempt(b.ID)
	if mending != nil {
		mending.isRepair = false
	}
	j.pools = slices.DeleteFunc(j.pools, func(k *pool) bool { // a missing pool is attempted separately
		return !slices.ContainsFunc(b.Pools, func(stored lb.Pool) bool { return stored.ID.Key() == k.id.Key() })
	})
	for _, k := range s.callPools(call{joint: j}) {
		k.attempt.phase, k.attempt.isRead = "put", false
	}
	p.recordWriteStart(b.ID, "whole", false)
	s.mu.Unlock()
	shown, err := p.client.PutLoadBalancer(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.activeWrites[b.ID.Key()]--
	j.isAnswered = err == nil
	if err != nil && mending != nil { // no pool's attempt, but it may have failed for all of them
		for _, k := range s.poolsOf(b.ID) {
			k.recordDrift()
		}
	}
	return shown, err
}

// newBatchCall classifies a load balancer request; ok is false for other requests. The caller holds
// s.mu.
func (s *Stage) newBatchCall(req *http.Request, c call) (_ call, ok bool) {
	id, polls := lb.LoadBalancerID{}, false
	if operation, ok := operationID(req.URL.Path); ok {
		if id, polls = s.history.batchWrites[operation]; !polls {
			return c, false
		}
	}
	for _, b := range s.loadBalancers {
		if !polls && strings.EqualFold(req.URL.Path, b.String()) {
			id = b
		}
	}
	if id.Name == "" {
		return c, false
	}
	j := s.batchOf(id)
	c.pool, c.joint = lb.PoolID{LoadBalancer: id}, j
	if polls {
		c.kind = "poll"
		return c, true
	}
	switch j.sent++; {
	case j.phase == "put" && c.kind == http.MethodGet:
		c.kind = "result"
	case j.sent > 1:
		c.isRetry = true
	}
	for _, k := range j.pools {
		if how := s.closedReason(k, c); how != "" && k.isAttempted() && j.phase != "check" {
			c.closedReason = how
		}
	}
	return c, true
}

func (c call) targetName() string {
	if c.joint != nil {
		return c.pool.LoadBalancer.Name
	}
	return c.pool.Name
}

// callPools returns the pools of a call; for a joint attempt, the unresolved ones. The caller holds
// s.mu.
func (s *Stage) callPools(c call) []*pool {
	if c.joint != nil {
		return slices.DeleteFunc(slices.Clone(c.joint.pools), func(k *pool) bool { return k.attempt == nil })
	}
	if k := s.pools[c.pool.Key()]; k != nil {
		return []*pool{k}
	}
	return nil
}

// orderDelay delays the record of a BackendPool so that records of the same instant are ordered.
func (s *Stage) orderDelay(ref schedule.Ref) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sortedPools(), func(k *pool) bool { return k.id.Name == ref.Name })
	return time.Duration(i+1) * time.Microsecond
}

// isBatchRead reports whether a pool was read in a batch. If that read is insufficient, it ends without
// a report and an attempt follows. The caller holds the stage's mu.
func (p *pool) isBatchRead() bool { return p.attempt != nil && p.attempt.isRead }

// endBatchReads ends the batch reads of a worker's pools when one of them begins an attempt. The caller
// holds s.mu.
func (s *Stage) endBatchReads(id lb.LoadBalancerID, but *pool) {
	for _, k := range s.poolsOf(id) {
		if k != but && k.isBatchRead() {
			s.voidAttempt(k)
		}
	}
}

// voidAttempt voids an attempt and requeues its work, except drift reads. The caller holds s.mu.
func (s *Stage) voidAttempt(k *pool) {
	k.requeueBatch()
	if first := k.attempt.firstQueuedAt; !first.IsZero() {
		if k.firstQueuedAt = first; !k.attempt.isOrphaned && s.isManaged(k) {
			k.queuedAt = time.Now()
		}
	}
	k.attempt, k.endedAt = nil, time.Now()
}

// recordQuery records that an operation is about to be attempted. The caller holds s.mu.
func (s *Stage) recordQuery(op schedule.Operation, k *pool) {
	j := s.batchOf(op.Pool.LoadBalancer)
	for _, other := range j.queried {
		if other == k {
			return
		}
	}
	j.queried = append(j.queried, k)
}

// recordAttemptEnd records that the query was made at the end of an attempt. The caller holds s.mu.
func (s *Stage) recordAttemptEnd(k *pool) {
	j := s.batchOf(k.id.LoadBalancer)
	j.queried = slices.DeleteFunc(j.queried, func(other *pool) bool { return other == k })
}
