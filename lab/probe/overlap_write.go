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
		result, err := r.runOverlap(ctx, together)
		if err != nil {
			return err
		}
		rounds = append(rounds, result)
		outcome, reason := result.result()
		r.recordEvent("PUT of a pool", writeResult{result.first, result.firstEnd}, "", overlap)
		r.recordEvent("PUT of another pool at once", writeResult{result.second, result.secondEnd}, result.describeContent()+resultOrReason(outcome, reason), overlap)
		// If the first write was too fast, send both at once in the next round.
		together = outcome == "" && result.firstEnd.State == succeeded && result.secondEnd.State == succeeded
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
	result, err := r.sendWrites(ctx, first, second, together)
	if err != nil {
		return round{}, err
	}
	if result.first.IsAccepted() && result.second.IsAccepted() {
		balancer, pool, err := r.readLoadBalancer(ctx)
		if err != nil {
			return round{}, err
		}
		result.firstSeen, result.secondSeen = hasAddresses(balancer, pool, a, b)
		r.cached = nil
	}
	for _, w := range []struct {
		of  Response
		end *Result
	}{{result.first, &result.firstEnd}, {result.second, &result.secondEnd}} {
		if !w.of.IsAccepted() {
			continue
		}
		if *w.end, err = r.Azure.Follow(ctx, w.of); err != nil {
			return round{}, fmt.Errorf("the end of a write is not known: %w", err)
		}
	}
	if !result.first.IsAccepted() || !result.second.IsAccepted() {
		return result, nil // the rejection is the result
	}
	balancer, pool, err := r.readLoadBalancer(ctx)
	if err != nil {
		return round{}, err
	}
	result.firstPresent, result.secondPresent = hasAddresses(balancer, pool, a, b)
	return result, nil
}

func hasAddresses(balancer, pool Object, a, b member) (first, second bool) {
	return memberState(poolMembers(pool), a.ip) != "", memberState(poolMembers(findPool(balancer, addedPool)), b.ip) != ""
}

// sendWrites does not retry: the response is the result.
func (r *run) sendWrites(ctx context.Context, first, second Request, together bool) (result round, err error) {
	r.calls.Add(2)
	r.cached = nil
	if !together {
		if result.first, err = r.Azure.Send(ctx, first); err == nil {
			result.second, err = r.Azure.Send(ctx, second)
		}
	} else {
		var other error
		var both sync.WaitGroup
		both.Go(func() { result.first, other = r.Azure.Send(ctx, first) })
		result.second, err = r.Azure.Send(ctx, second)
		both.Wait()
		if err == nil {
			err = other
		}
	}
	if err != nil {
		return round{}, fmt.Errorf("write %s and %s: %w", path.Base(first.Path), path.Base(second.Path), err)
	}
	return result, nil
}
