// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"cmp"
	"slices"
	"time"
)

// Write is one write of a pool: what it brought, which is what was wanted at From, and since
// when Azure acts on it.
type Write struct {
	Pool         int
	From, Effect time.Duration
	// Part is true if it is no request of its own, but a part of the one before.
	Part bool
}

// Figures are what a schedule comes to.
type Figures struct {
	Writes int
	// Early counts those that are begun within an interval of another of their pool, which is never
	// paced: of these a budget speaks.
	Early int
	// Most is how many of them are begun in any five minutes.
	Most int
	// Mean, Median and P99 are of all changes: from when it is wanted until Azure acts on it.
	Mean, Median, P99 time.Duration
	// Missing and Wrong add up, in seconds, for how long members were wanted and not there, and
	// there and not wanted.
	Missing, Wrong float64
	// Lags are those of all changes, in order of length.
	Lags []time.Duration
}

// Measure compares what a trace wants with what writes have brought.
func (t Trace) Measure(writes []Write) Figures {
	f := Figures{Most: most(writes)}
	of := make([][]Write, len(t.First))
	for _, w := range writes {
		of[w.Pool] = append(of[w.Pool], w)
		if !w.Part {
			f.Writes++
		}
	}
	changes := make([][]Change, len(t.First))
	for _, c := range t.Changes {
		changes[c.Pool] = append(changes[c.Pool], c)
	}
	for p := range of {
		slices.SortFunc(of[p], func(a, b Write) int { return cmp.Or(int(a.Effect-b.Effect), int(a.From-b.From)) })
		f.Early += early(of[p])
		f.Lags = append(f.Lags, lags(t.First[p], changes[p], of[p], t.Lasts)...)
		f.wrong(t.First[p], changes[p], of[p], t.Lasts)
	}
	slices.Sort(f.Lags)
	var sum time.Duration
	for _, lag := range f.Lags {
		sum += lag
	}
	f.Mean, f.Median, f.P99 = sum/time.Duration(len(f.Lags)), f.quantile(.5), f.quantile(.99)
	return f
}

// lags returns how long each change of one pool waits, of which writes are in the order of their
// effects: until one has brought it, or until what is wanted is what Azure holds, for it was taken back
// before anybody wrote it. One that is neither waits to the end.
func lags(held members, changes []Change, writes []Write, lasts time.Duration) []time.Duration {
	all := make([]time.Duration, len(changes))
	wanted, seen, over := held, 0, 0 // changes that have come, and that are over
	end := func(at time.Duration) {
		for ; over < seen; over++ {
			all[over] = at - changes[over].At
		}
	}
	content := contents(held, changes, writes)
	for i := 0; over < len(changes); {
		switch {
		case seen < len(changes) && (i == len(writes) || changes[seen].At < writes[i].Effect):
			at := changes[seen].At
			for ; seen < len(changes) && changes[seen].At == at; seen++ {
				wanted = changes[seen].Want
			}
			if wanted == held {
				end(at)
			}
		case i < len(writes):
			for ; over < seen && changes[over].At <= writes[i].From; over++ {
				all[over] = writes[i].Effect - changes[over].At
			}
			if held = content[i]; wanted == held {
				end(writes[i].Effect)
			}
			i++
		default:
			end(lasts)
		}
	}
	return all
}

// contents are what writes of a pool have brought.
func contents(first members, changes []Change, writes []Write) []members {
	all := make([]members, len(writes))
	for i, w := range writes {
		all[i] = wantedAt(first, changes, w.From)
	}
	return all
}

func (f Figures) quantile(q float64) time.Duration { return f.Lags[int(q*float64(len(f.Lags)-1))] }

// wrong adds up what one pool misses and has too much.
func (f *Figures) wrong(held members, changes []Change, writes []Write, lasts time.Duration) {
	wanted, at := held, time.Duration(0)
	content := contents(held, changes, writes)
	for at < lasts {
		next := lasts
		for len(changes) > 0 && changes[0].At <= at {
			wanted, changes = changes[0].Want, changes[1:]
		}
		for len(writes) > 0 && writes[0].Effect <= at {
			held, writes, content = content[0], writes[1:], content[1:]
		}
		if len(changes) > 0 {
			next = min(next, changes[0].At)
		}
		if len(writes) > 0 {
			next = min(next, writes[0].Effect)
		}
		f.Missing += float64(wanted.but(held)) * (next - at).Seconds()
		f.Wrong += float64(held.but(wanted)) * (next - at).Seconds()
		at = next
	}
}

// wantedAt is what a pool wants at a time.
func wantedAt(first members, changes []Change, at time.Duration) members {
	for _, c := range changes {
		if c.At > at {
			break
		}
		first = c.Want
	}
	return first
}

// early counts those of one pool, in order, that follow another within an interval.
func early(writes []Write) int {
	n := 0
	for i := 1; i < len(writes); i++ {
		if writes[i].From-writes[i-1].From < Interval {
			n++
		}
	}
	return n
}

// most counts the writes of the busiest five minutes.
func most(writes []Write) int {
	var begun []time.Duration
	for _, w := range writes {
		if !w.Part {
			begun = append(begun, w.From)
		}
	}
	slices.Sort(begun)
	most, first := 0, 0
	for last := range begun {
		for begun[last]-begun[first] >= windowLasts {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// windowLasts is that of Microsoft.Network's quota.
const windowLasts = 5 * time.Minute
