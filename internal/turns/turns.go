// SPDX-License-Identifier: Apache-2.0

// Package turns schedules namespaces that share serial work: none gets more than a turn ahead, and
// one that keeps changing the same objects causes fewer rounds. It is pure.
package turns

// Line is a round-robin order. New namespaces, and those that had their turn, go to the end. The
// zero value is empty.
type Line struct {
	last  uint64
	of    map[string]uint64
	round uint64
}

// Stand sets the namespaces in line. New ones are appended in order.
func (l *Line) Stand(namespaces []string) {
	of := make(map[string]uint64, len(namespaces))
	for _, n := range namespaces {
		turn, inLine := l.of[n]
		if _, seen := of[n]; seen {
			continue
		}
		if !inLine {
			l.last++
			turn = l.last
		}
		of[n] = turn
	}
	l.of = of
}

// Round starts a round if no ready namespace has a turn left.
func (l *Line) Round(ready []string) {
	for _, n := range ready {
		if l.of[n] <= l.round {
			return
		}
	}
	l.round = l.last
}

// Turn orders the namespaces: the lowest is next.
func (l *Line) Turn(namespace string) uint64 { return l.of[namespace] }

// Later reports whether a namespace had its turn in this round, or joined later. In any order
// within a round, a namespace waits for at most two turns of each other.
func (l *Line) Later(namespace string) bool { return l.of[namespace] > l.round }

// Took moves a namespace to the end.
func (l *Line) Took(namespace string) {
	if _, inLine := l.of[namespace]; inLine {
		l.last++
		l.of[namespace] = l.last
	}
}

// Deal selects up to limit items, round-robin over namespaces, and keeps their order.
func Deal[T any](items []T, namespace func(T) string, limit int) (selected, left []T) {
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
			left = append(left, item)
		}
	}
	return selected, left
}
