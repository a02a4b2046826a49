// SPDX-License-Identifier: Apache-2.0

// Package turns says whose turn it is where namespaces share what is done one after the other:
// one with much to do is never further ahead of a neighbour than by one turn each. It is pure.
package turns

// Line is the order in which namespaces have their turns. Whoever comes stands at the end of it,
// as does whoever had his turn, so nobody waits for more turns than there are others in line.
// The zero value is an empty one.
type Line struct {
	last uint64
	of   map[string]uint64
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

// Turn orders the namespaces in line: the lowest is next.
func (l *Line) Turn(namespace string) uint64 { return l.of[namespace] }

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
