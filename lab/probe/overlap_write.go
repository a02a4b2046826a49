// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"path"
	"sync"
)

// checkOverlap overlaps writes of two pools until enough rounds agree or two differ.
func (r *run) checkOverlap(ctx context.Context) error {
	var rounds []round
	together := false
	for range maxRounds {
		one, err := r.runOverlap(ctx, together)
		if err != nil {
			return err
		}
		rounds = append(rounds, one)
		outcome, reason := one.result()
		r.recordEvent("PUT of a pool", writeResult{one.first, one.firstEnd}, "", overlap)
		r.recordEvent("PUT of another pool at once", writeResult{one.second, one.secondEnd}, one.describeContent()+resultOrReason(outcome, reason), overlap)
		// If the first write was too fast, send both at once in the next round.
		together = outcome == "" && one.firstEnd.State == succeeded && one.secondEnd.State == succeeded
		if _, _, enough := roundsResult(rounds); enough {
			break
		}
	}
	a, reason, _ := roundsResult(rounds)
	r.recordResult(overlap, a, reason)
	return nil
}

func (r round) describeContent() string {
	if !r.first.IsAccepted() || !r.second.IsAccepted() {
		return ""
	}
	return fmt.Sprintf("what the first put is there: %t, what this put: %t; so ", r.firstPresent, r.secondPresent)
}

// runOverlap uses new addresses, which identify the write.
func (r *run) runOverlap(ctx context.Context, together bool) (round, error) {
	a, b := r.newMember(), r.newMember()
	first := newWrite(r.poolPath(byAddress, membersPool), r.poolBody([]member{servingMember(none), a}))
	second := newWrite(r.poolPath(byAddress, addedPool), r.poolBody([]member{b}))
	one, err := r.sendWrites(ctx, first, second, together)
	if err != nil {
		return round{}, err
	}
	if one.first.IsAccepted() && one.second.IsAccepted() {
		balancer, pool, err := r.readLoadBalancer(ctx)
		if err != nil {
			return round{}, err
		}
		one.firstSeen, one.secondSeen = hasAddresses(balancer, pool, a, b)
		r.cached = nil
	}
	for _, w := range []struct {
		of  Response
		end *Result
	}{{one.first, &one.firstEnd}, {one.second, &one.secondEnd}} {
		if !w.of.IsAccepted() {
			continue
		}
		if *w.end, err = r.Azure.Follow(ctx, w.of); err != nil {
			return round{}, fmt.Errorf("the end of a write is not known: %w", err)
		}
	}
	if !one.first.IsAccepted() || !one.second.IsAccepted() {
		return one, nil // the rejection is the result
	}
	balancer, pool, err := r.readLoadBalancer(ctx)
	if err != nil {
		return round{}, err
	}
	one.firstPresent, one.secondPresent = hasAddresses(balancer, pool, a, b)
	return one, nil
}

func hasAddresses(balancer, pool Object, a, b member) (first, second bool) {
	return memberState(poolMembers(pool), a.ip) != "", memberState(poolMembers(findPool(balancer, addedPool)), b.ip) != ""
}

// sendWrites does not retry: the response is the result.
func (r *run) sendWrites(ctx context.Context, first, second Request, together bool) (one round, err error) {
	r.calls.Add(2)
	r.cached = nil
	if !together {
		if one.first, err = r.Azure.Send(ctx, first); err == nil {
			one.second, err = r.Azure.Send(ctx, second)
		}
	} else {
		var other error
		var both sync.WaitGroup
		both.Go(func() { one.first, other = r.Azure.Send(ctx, first) })
		one.second, err = r.Azure.Send(ctx, second)
		both.Wait()
		if err == nil {
			err = other
		}
	}
	if err != nil {
		return round{}, fmt.Errorf("write %s and %s: %w", path.Base(first.Path), path.Base(second.Path), err)
	}
	return one, nil
}
