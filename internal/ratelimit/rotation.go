// SPDX-License-Identifier: Apache-2.0

package ratelimit

// Rotation is a round-robin order. New namespaces, and those that had their turn, go to the end. The
// zero value is empty.
type Rotation struct {
	lastTurn uint64
	order    map[string]uint64
	roundEnd uint64
}

// SetNamespaces sets the namespaces in line. New ones are appended in order.
func (r *Rotation) SetNamespaces(namespaces []string) {
	of := make(map[string]uint64, len(namespaces))
	for _, n := range namespaces {
		turn, inLine := r.order[n]
		if _, seen := of[n]; seen {
			continue
		}
		if !inLine {
			r.lastTurn++
			turn = r.lastTurn
		}
		of[n] = turn
	}
	r.order = of
}

// UpdateRound starts a round if no ready namespace has a turn left.
func (r *Rotation) UpdateRound(ready []string) {
	for _, n := range ready {
		if r.order[n] <= r.roundEnd {
			return
		}
	}
	r.roundEnd = r.lastTurn
}

// OrderOf orders the namespaces: the lowest is next.
func (r *Rotation) OrderOf(namespace string) uint64 { return r.order[namespace] }

// InNextRound reports whether a namespace had its turn in this round, or joined later. In any order
// within a round, a namespace waits for at most two turns of each other.
func (r *Rotation) InNextRound(namespace string) bool { return r.order[namespace] > r.roundEnd }

// MoveToEnd moves a namespace to the end.
func (r *Rotation) MoveToEnd(namespace string) {
	if _, inLine := r.order[namespace]; inLine {
		r.lastTurn++
		r.order[namespace] = r.lastTurn
	}
}

// SelectFair selects up to limit items, round-robin over namespaces, and keeps their order.
func SelectFair[T any](items []T, namespace func(T) string, limit int) (selected, rest []T) {
	if len(items) <= limit {
		return items, nil
	}
	var order []string
	of := map[string][]int{}
	for i, item := range items {
		n := namespace(item)
		if of[n] == nil {
			order = append(order, n)
		}
		of[n] = append(of[n], i)
	}
	taken := make([]bool, len(items))
	for round := 0; limit > 0; round++ {
		for _, n := range order {
			if round < len(of[n]) && limit > 0 {
				taken[of[n][round]] = true
				limit--
			}
		}
	}
	for i, item := range items {
		if taken[i] {
			selected = append(selected, item)
		} else {
			rest = append(rest, item)
		}
	}
	return selected, rest
}
