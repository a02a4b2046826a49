// SPDX-License-Identifier: Apache-2.0

// Package turns says whose turn it is where namespaces share what is done one after the other:
// one with much to do is never further ahead of a neighbour than by one turn each, and one that keeps changing the same objects
// causes fewer rounds (spacing.go). It is pure.
package turns

// Line is the order in which namespaces have their turns. Whoever comes stands at the end of it,
// as does whoever had his turn, so nobody waits for more turns than there are others in line.
// The zero value is an empty one.
type Line struct {
	last uint64
	of   map[string]uint64
	// round is the last turn of the round that is under way.
	round uint64
}

// Stand has these namespaces in line, and no others: who is new stands at the end, in this
// order, and who is not among them has left.
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

// Round begins another round if none of these namespaces, which could have their turn now, has one
// left in the round that is under way.
func (l *Line) Round(ready []string) {
	for _, n := range ready {
		if l.of[n] <= l.round {
			return
		}
	}
	l.round = l.last
}

// Turn orders the namespaces in line: the lowest is next.
func (l *Line) Turn(namespace string) uint64 { return l.of[namespace] }

// Later reports whether a namespace has had its turn in this round, or came after the round had
// begun. Whoever picks any of a
// round, in whatever order, has nobody wait for more than two turns of each other.
func (l *Line) Later(namespace string) bool { return l.of[namespace] > l.round }

// Took sends a namespace to the end of the line.
func (l *Line) Took(namespace string) {
	if _, stands := l.of[namespace]; stands {
		l.last++
		l.of[namespace] = l.last
	}
}

// Deal takes at most so many of some items, one of each namespace in turn. Those of one keep
// their order, in what is dealt as in what is left.
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
