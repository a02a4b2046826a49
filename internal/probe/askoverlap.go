// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"path"
	"sync"
)

// askOverlap overlaps writes of two pools until enough rounds agree or two differ.
func (r *run) askOverlap(ctx context.Context) error {
	var rounds []round
	together := false
	for range mostRounds {
		one, err := r.overlap(ctx, together)
		if err != nil {
			return err
		}
		rounds = append(rounds, one)
		outcome, reason := one.outcome()
		r.note("PUT of a pool", put{one.first, one.firstEnd}, "", overlapping)
		r.note("PUT of another pool at once", put{one.second, one.secondEnd}, one.shows()+saw(outcome, reason), overlapping)
		// If the first write was too fast, send both at once in the next round.
		together = outcome == "" && one.firstEnd.State == succeeded && one.secondEnd.State == succeeded
		if _, _, enough := ofRounds(rounds); enough {
			break
		}
	}
	a, reason, _ := ofRounds(rounds)
	r.settle(overlapping, a, reason)
	return nil
}

func (r round) shows() string {
	if !r.first.took() || !r.second.took() {
		return ""
	}
	return fmt.Sprintf("what the first put is there: %t, what this put: %t; so ", r.firstThere, r.secondThere)
}

// overlap uses new addresses, which identify the write.
func (r *run) overlap(ctx context.Context, together bool) (round, error) {
	a, b := r.spare(), r.spare()
	first := write(r.pool(byAddress, membersPool), r.poolBody([]member{serving(none), a}))
	second := write(r.pool(byAddress, furtherPool), r.poolBody([]member{b}))
	one, err := r.sendBoth(ctx, first, second, together)
	if err != nil {
		return round{}, err
	}
	if one.first.took() && one.second.took() {
		balancer, pool, err := r.readBalancer(ctx)
		if err != nil {
			return round{}, err
		}
		one.firstSeen, one.secondSeen = shown(balancer, pool, a, b)
		r.shown = nil
	}
	for _, w := range []struct {
		of  Answer
		end *End
	}{{one.first, &one.firstEnd}, {one.second, &one.secondEnd}} {
		if !w.of.took() {
			continue
		}
		if *w.end, err = r.Azure.Follow(ctx, w.of); err != nil {
			return round{}, fmt.Errorf("the end of a write is not known: %w", err)
		}
	}
	if !one.first.took() || !one.second.took() {
		return one, nil // the rejection is the result
	}
	balancer, pool, err := r.readBalancer(ctx)
	if err != nil {
		return round{}, err
	}
	one.firstThere, one.secondThere = shown(balancer, pool, a, b)
	return one, nil
}

func shown(balancer, pool Object, a, b member) (first, second bool) {
	return stateOf(members(pool), a.ip) != "", stateOf(members(poolOf(balancer, furtherPool)), b.ip) != ""
}

// sendBoth does not retry: the response is the result.
func (r *run) sendBoth(ctx context.Context, first, second Request, together bool) (one round, err error) {
	r.calls.Add(2)
	r.shown = nil
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
