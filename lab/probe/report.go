// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb/behavior"
)

func (r *run) newReport() behavior.Report {
	result := behavior.Report{
		Version: r.Version, When: r.startTime.UTC().Truncate(time.Second), Cloud: r.Cloud, Location: r.Location,
		Requests: int(r.calls.Load()), Latencies: summarizeLatency(r.samples),
	}
	for _, q := range behavior.AllProperties() {
		f := *r.results[q.Name]
		if f.Result == "" && f.Reason == "" {
			f.Reason = "the run ended before"
		}
		f.Reason = r.redactLine(f.Reason)
		f.Events = slices.Clone(f.Events)
		for i := range f.Events {
			f.Events[i].Details = r.redactLine(f.Events[i].Details)
		}
		if next, err := result.Behaviour.WithResult(f.Name, f.Result); err == nil {
			result.Behaviour = next
		}
		result.Properties = append(result.Properties, f)
	}
	return result
}

func (r *run) redactLine(text string) string { return singleLine(Redact(text, r.allSecrets()...)) }
