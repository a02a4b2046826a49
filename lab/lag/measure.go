// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"slices"
	"time"
)

// Write is one write of a pool: what it brought, which is what was wanted at From, and since
// when Azure acts on it.
type Write struct {
	Pool         int
	From, Effect time.Duration
}

// Figures are what a schedule comes to.
type Figures struct {
	Writes int
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

// Measure compares what a trace wants with what writes have brought. A change that no write has
// brought lasts to the end.
func (t Trace) Measure(writes []Write) Figures {
	f := Figures{Writes: len(writes), Most: most(writes)}
	of := make([][]Write, len(t.First))
	for _, w := range writes {
		of[w.Pool] = append(of[w.Pool], w)
	}
	changes := make([][]Change, len(t.First))
	for _, c := range t.Changes {
		changes[c.Pool] = append(changes[c.Pool], c)
	}
	for p := range of {
		slices.SortFunc(of[p], func(a, b Write) int { return int(a.Effect - b.Effect) })
		for _, c := range changes[p] {
			at := t.Lasts
			if i := slices.IndexFunc(of[p], func(w Write) bool { return w.From >= c.At }); i >= 0 {
				at = of[p][i].Effect
			}
			f.Lags = append(f.Lags, at-c.At)
		}
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

func (f Figures) quantile(q float64) time.Duration { return f.Lags[int(q*float64(len(f.Lags)-1))] }

// wrong adds up what one pool misses and has too much.
func (f *Figures) wrong(held members, changes []Change, writes []Write, lasts time.Duration) {
	wanted, at := held, time.Duration(0)
	content := make([]members, len(writes))
	for i, w := range writes {
		content[i] = wantedAt(wanted, changes, w.From)
	}
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

// most counts the writes of the busiest five minutes.
func most(writes []Write) int {
	begun := make([]time.Duration, len(writes))
	for i, w := range writes {
		begun[i] = w.From
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
