// SPDX-License-Identifier: Apache-2.0

// Package turns schedules namespaces that share serial work. A namespace with much work is never
// more than one turn ahead of another, and one that keeps changing the same objects causes fewer
// rounds. It is pure.
package turns

// Line is the round-robin order of namespaces. New namespaces, and those that had their turn, go to
// the end, so each waits for at most one turn of every other. The zero value is empty.
type Line struct {
	last uint64
	of   map[string]uint64
	// round is the last turn of the current round.
	round uint64
}

// Stand sets the namespaces in line. New ones are appended in this order; missing ones are removed.
func (l *Line) Stand(namespaces []string) {
	of := make(map[string]uint64, len(namespaces))
	for _, n := range namespaces {
		turn, stands := l.of[n]
		if _, twice := of[n]; twice {
			continue
		}
		if !stands {
			l.last++
			turn = l.last
		}
		of[n] = turn
	}
	l.of = of
}

// Round starts a new round if none of the ready namespaces has a turn left in the current one.
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

// Later reports whether a namespace has had its turn in this round, or joined after the round
// began. Serving a round in any order bounds the wait to two turns of each other namespace.
func (l *Line) Later(namespace string) bool { return l.of[namespace] > l.round }

// Took moves a namespace to the end.
func (l *Line) Took(namespace string) {
	if _, stands := l.of[namespace]; stands {
		l.last++
		l.of[namespace] = l.last
	}
}

// Deal selects at most most items, round-robin over namespaces. dealt and left keep the order
// within each namespace.
func Deal[T any](items []T, namespace func(T) string, most int) (dealt, left []T) {
	if len(items) <= most {
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
	for round := 0; most > 0; round++ {
		for _, n := range order {
			if round < len(of[n]) && most > 0 {
				taken[of[n][round]] = true
				most--
			}
		}
	}
	for i, item := range items {
		if taken[i] {
			dealt = append(dealt, item)
		} else {
			left = append(left, item)
		}
	}
	return dealt, left
}
