// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir.dev/weir/internal/lb/behavior"
)

type sample struct {
	write     string
	span      behavior.Span
	immediate bool
}

func writeSpan(a Response, end Result) behavior.Span {
	from := a.At
	if end.RunningAt.After(from) {
		from = end.RunningAt
	}
	return behavior.Span{AtLeastSeconds: toSeconds(from.Sub(a.Sent)), AtMostSeconds: toSeconds(end.FinishedAt.Sub(a.Sent))}
}

func toSeconds(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }

// summarizeLatency keeps the order of first appearance.
func summarizeLatency(samples []sample) []behavior.Latency {
	kinds := map[string][]sample{}
	var order []string
	for _, s := range samples {
		if kinds[s.write] == nil {
			order = append(order, s.write)
		}
		kinds[s.write] = append(kinds[s.write], s)
	}
	list := make([]behavior.Latency, 0, len(order))
	for _, kind := range order {
		ordered := slices.SortedStableFunc(slices.Values(kinds[kind]), func(a, b sample) int {
			return cmp.Or(cmp.Compare(a.span.AtMostSeconds, b.span.AtMostSeconds), cmp.Compare(a.span.AtLeastSeconds, b.span.AtLeastSeconds))
		})
		l := behavior.Latency{Write: kind, Count: len(ordered), Median: ordered[(len(ordered)-1)/2].span, Longest: ordered[len(ordered)-1].span}
		for _, s := range ordered {
			if s.immediate {
				l.Immediate++
			}
		}
		list = append(list, l)
	}
	return list
}
