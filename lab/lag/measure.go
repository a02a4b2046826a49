// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"cmp"
	"slices"
	"time"
)

// Write is one write of a pool, with the members desired at From, effective since Effect.
type Write struct {
	Pool         int
	From, Effect time.Duration
	// Part marks a further pool in the same request as the previous write.
	Part bool
}

// Figures are the results of a schedule.
type Figures struct {
	Writes int
	// Early counts writes within an interval of another of the same pool; the budget applies to
	// these.
	Early int
	// Most is the maximum number of writes started in any five minutes.
	Most int
	// Mean, Median and P99 are over all changes, from the change until Azure applies it.
	Mean, Median, P99 time.Duration
	// Missing and Wrong are member-seconds: desired but absent, and present but not desired.
	Missing, Wrong float64
	// Lags of all changes, sorted.
	Lags []time.Duration
}

// Measure computes the figures of the writes for a trace.
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

// lags returns the lag of each change of one pool; writes are sorted by effect. A change ends when
// a write delivers it, or when the desired members equal Azure's again. Otherwise it lasts until
// the end.
func lags(held members, changes []Change, writes []Write, lasts time.Duration) []time.Duration {
	all := make([]time.Duration, len(changes))
	wanted, seen, over := held, 0, 0 // numbers of arrived and of finished changes
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

// contents returns the members delivered by each write.
func contents(first members, changes []Change, writes []Write) []members {
	all := make([]members, len(writes))
	for i, w := range writes {
		all[i] = wantedAt(first, changes, w.From)
	}
	return all
}

func (f Figures) quantile(q float64) time.Duration { return f.Lags[int(q*float64(len(f.Lags)-1))] }

// wrong adds one pool's missing and wrong member-seconds.
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

// wantedAt returns the desired members at a time.
func wantedAt(first members, changes []Change, at time.Duration) members {
	for _, c := range changes {
		if c.At > at {
			break
		}
		first = c.Want
	}
	return first
}

// early counts writes of one pool that follow another within an interval.
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

// windowLasts is the window of Microsoft.Network's quota.
const windowLasts = 5 * time.Minute
