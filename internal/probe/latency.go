// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Span is a duration with bounds, because polls observe it.
type Span struct {
	AtLeastSeconds float64 `json:"atLeastSeconds"`
	AtMostSeconds  float64 `json:"atMostSeconds"`
}

// Latency summarizes one kind of write, from the request to the end of its operation.
type Latency struct {
	Write string `json:"write"`
	Count int    `json:"count"`
	// AtOnce counts writes that had finished with the first response.
	AtOnce  int  `json:"atOnce"`
	Median  Span `json:"median"`
	Longest Span `json:"longest"`
}

type sample struct {
	write  string
	span   Span
	atOnce bool
}

func spanOf(a Answer, end End) Span {
	from := a.At
	if end.Running.After(from) {
		from = end.Running
	}
	return Span{seconds(from.Sub(a.Sent)), seconds(end.Over.Sub(a.Sent))}
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }

// latencies keeps the order of first appearance.
func latencies(all []sample) []Latency {
	kinds := map[string][]sample{}
	var order []string
	for _, s := range all {
		if kinds[s.write] == nil {
			order = append(order, s.write)
		}
		kinds[s.write] = append(kinds[s.write], s)
	}
	list := make([]Latency, 0, len(order))
	for _, kind := range order {
		ordered := slices.SortedStableFunc(slices.Values(kinds[kind]), func(a, b sample) int {
			return cmp.Or(cmp.Compare(a.span.AtMostSeconds, b.span.AtMostSeconds), cmp.Compare(a.span.AtLeastSeconds, b.span.AtLeastSeconds))
		})
		l := Latency{Write: kind, Count: len(ordered), Median: ordered[(len(ordered)-1)/2].span, Longest: ordered[len(ordered)-1].span}
		for _, s := range ordered {
			if s.atOnce {
				l.AtOnce++
			}
		}
		list = append(list, l)
	}
	return list
}
