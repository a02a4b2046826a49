// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"cmp"
	"slices"
	"time"
)

// Write delivers the members desired at From, effective since Effect.
type Write struct {
	Pool         int
	From, Effect time.Duration
}

// Stats are the results of a schedule.
type Stats struct {
	Writes int
	// Early counts writes within an interval of another of the same pool.
	Early int
	// MaxPerWindow is the maximum in any five minutes.
	MaxPerWindow int
	// Over all changes, from the change until Azure applies it.
	Average, P50, P99 time.Duration
	// Member-seconds: desired but absent, and present but not desired.
	Missing, Unwanted float64
	// Sorted.
	Latencies []time.Duration
}

// ComputeStats computes the figures of the writes.
func (t Trace) ComputeStats(writes []Write) Stats {
	f := Stats{MaxPerWindow: maxPerWindow(writes)}
	of := make([][]Write, len(t.Initial))
	for _, w := range writes {
		of[w.Pool] = append(of[w.Pool], w)
		f.Writes++
	}
	changes := make([][]Change, len(t.Initial))
	for _, c := range t.Changes {
		changes[c.Pool] = append(changes[c.Pool], c)
	}
	for p := range of {
		slices.SortFunc(of[p], func(a, b Write) int { return cmp.Or(int(a.Effect-b.Effect), int(a.From-b.From)) })
		f.Early += countEarly(of[p])
		f.Latencies = append(f.Latencies, changeLatencies(t.Initial[p], changes[p], of[p], t.Duration)...)
		f.addMemberTime(t.Initial[p], changes[p], of[p], t.Duration)
	}
	slices.Sort(f.Latencies)
	var sum time.Duration
	for _, lag := range f.Latencies {
		sum += lag
	}
	f.Average, f.P50, f.P99 = sum/time.Duration(len(f.Latencies)), f.latencyQuantile(.5), f.latencyQuantile(.99)
	return f
}

// changeLatencies expects writes sorted by effect. A change ends when a write delivers it, or when the desired
// members equal Azure's again, else at the end.
func changeLatencies(held nodeSet, changes []Change, writes []Write, lasts time.Duration) []time.Duration {
	durations := make([]time.Duration, len(changes))
	wanted, seen, over := held, 0, 0 // changes arrived, and finished
	end := func(at time.Duration) {
		for ; over < seen; over++ {
			durations[over] = at - changes[over].At
		}
	}
	content := writtenMembers(held, changes, writes)
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
				durations[over] = writes[i].Effect - changes[over].At
			}
			if held = content[i]; wanted == held {
				end(writes[i].Effect)
			}
			i++
		default:
			end(lasts)
		}
	}
	return durations
}

func writtenMembers(first nodeSet, changes []Change, writes []Write) []nodeSet {
	members := make([]nodeSet, len(writes))
	for i, w := range writes {
		members[i] = desiredAt(first, changes, w.From)
	}
	return members
}

func (s Stats) latencyQuantile(q float64) time.Duration {
	return s.Latencies[int(q*float64(len(s.Latencies)-1))]
}

func (s *Stats) addMemberTime(held nodeSet, changes []Change, writes []Write, lasts time.Duration) {
	wanted, at := held, time.Duration(0)
	content := writtenMembers(held, changes, writes)
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
		s.Missing += float64(wanted.countMissing(held)) * (next - at).Seconds()
		s.Unwanted += float64(held.countMissing(wanted)) * (next - at).Seconds()
		at = next
	}
}

// desiredAt returns the desired members at a time.
func desiredAt(first nodeSet, changes []Change, at time.Duration) nodeSet {
	for _, c := range changes {
		if c.At > at {
			break
		}
		first = c.Want
	}
	return first
}

func countEarly(writes []Write) int {
	n := 0
	for i := 1; i < len(writes); i++ {
		if writes[i].From-writes[i-1].From < Interval {
			n++
		}
	}
	return n
}

func maxPerWindow(writes []Write) int {
	var starts []time.Duration
	for _, w := range writes {
		starts = append(starts, w.From)
	}
	slices.Sort(starts)
	peak, first := 0, 0
	for last := range starts {
		for starts[last]-starts[first] >= quotaWindow {
			first++
		}
		peak = max(peak, last-first+1)
	}
	return peak
}

// quotaWindow is the window of Microsoft.Network's quota.
const quotaWindow = 5 * time.Minute
