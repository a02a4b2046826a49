// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
	"time"
)

// Summary is the result of a run. Durations are in milliseconds.
type Summary struct {
	OK      bool    `json:"ok"`
	Failure string  `json:"failure,omitempty"`
	Nodes   int     `json:"nodes"`
	Seed    uint64  `json:"seed"`
	Seconds float64 `json:"seconds"`

	Total PoolSummary   `json:"total"`
	Pools []PoolSummary `json:"pools"`
	ARM   traffic       `json:"arm"`
	Steps []StepSummary `json:"steps"`
	// Bulk is nil if the story did not reach act two.
	Bulk *BulkSummary `json:"crowd,omitempty"`
	// Evictions is nil if the story did not reach act three.
	Evictions *EvictionsSummary `json:"evictions,omitempty"`
	// PrivateLink is nil if the story did not reach act four.
	PrivateLink *PrivateLinkSummary `json:"published,omitempty"`
	// Gateway is nil if the story did not reach act five.
	Gateway *GatewaySummary `json:"gateway,omitempty"`
	// Connections is nil if the story opened none.
	Connections *ConnectionsSummary `json:"connections,omitempty"`
	// Notes are deviations from an idle machine's result. They do not fail a run.
	Notes []string `json:"notes,omitempty"`
	// SyncFailed counts the events of failed load balancers, including the one for a wrong
	// annotation.
	SyncFailed int `json:"syncFailedEvents"`
}

// PoolSummary is the result of one pool, or of all.
type PoolSummary struct {
	Name string `json:"name,omitempty"`
	// Changes counts the changes of the desired members.
	Changes int `json:"changes"`
	// The lags are measured from the API change until the pool showed it and Azure was idle.
	LagP50 int64 `json:"lagP50Ms"`
	LagP99 int64 `json:"lagP99Ms"`
	LagMax int64 `json:"lagMaxMs"`
	// StormMax is the longest lag in the storm; the others exclude it.
	StormMax  int64 `json:"stormLagMaxMs"`
	Writes    int   `json:"writes"`
	Throttled int   `json:"throttled"`
	Conflicts int   `json:"conflicts"`
	// Retrying and Failed count the events on the Service.
	Retrying int `json:"retryingEvents"`
	Failed   int `json:"failedEvents"`
	// Lost counts addresses missing at the end, and desired addresses that were removed.
	Lost int `json:"lostAddresses"`
	// Surplus counts undesired addresses at the end.
	Surplus int `json:"surplusAddresses"`
	// ForeignLost counts removals of foreign addresses.
	ForeignLost int `json:"foreignAddressesLost"`
}

// StepSummary is the result of one step.
type StepSummary struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	traffic
}

// newSummaries computes the result at the given time.
func (o *observer) newSummaries(now time.Time) (summaries PoolSummary, pools []PoolSummary, arm traffic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lags, storm []time.Duration
	for _, w := range allWorkloads {
		h := o.pools[w.name]
		p := h.newSummary(now)
		calls := o.traffic.pools[w.poolName()]
		p.Name, p.Writes, p.Throttled, p.Conflicts = w.name, calls.writes, calls.throttled, calls.conflicts
		pools = append(pools, p)
		lags, storm = append(lags, h.syncTimesAt(now, false)...), append(storm, h.syncTimesAt(now, true)...)
		summaries.Changes += p.Changes
		summaries.Lost += p.Lost
		summaries.Surplus += p.Surplus
		summaries.ForeignLost += p.ForeignLost
	}
	for _, calls := range o.traffic.pools {
		summaries.Writes += calls.writes
	}
	summaries.Throttled, summaries.Conflicts = o.traffic.Throttled, o.traffic.Conflicts
	summaries.setSyncTimes(lags, storm)
	return summaries, pools, o.traffic.deepCopy()
}

func (s *Summary) addEvents(retrying, failed map[string]int) {
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Retrying, p.Failed = retrying[p.Name], failed[p.Name]
		s.Total.Retrying += p.Retrying
		s.Total.Failed += p.Failed
	}
}

func (h *poolHistory) newSummary(now time.Time) PoolSummary {
	g := h.memberDiff()
	p := PoolSummary{
		Changes: h.changes, Lost: len(g.missing) + h.removedCount, Surplus: len(g.extra),
		ForeignLost: max(h.foreignRemoved, len(g.foreignMissing)),
	}
	p.setSyncTimes(h.syncTimesAt(now, false), h.syncTimesAt(now, true))
	return p
}

func (p *PoolSummary) setSyncTimes(lags, storm []time.Duration) {
	p.LagP50 = durationQuantile(lags, 0.5).Milliseconds()
	p.LagP99 = durationQuantile(lags, 0.99).Milliseconds()
	p.LagMax = durationQuantile(lags, 1).Milliseconds()
	p.StormMax = durationQuantile(storm, 1).Milliseconds()
}

// failureText describes the failures, or returns "".
func (s Summary) failureText() string {
	p, early, refused := s.Total, s.ARM.Early, s.SyncFailed
	if s.Bulk != nil {
		refused -= s.Bulk.Events
	}
	var parts []string
	for _, part := range []struct {
		n        int
		singular string
		many     string
	}{
		{p.Lost, "1 address lost", "%d addresses lost"},
		{p.Surplus, "1 address that should not be there", "%d addresses that should not be there"},
		{p.ForeignLost, "1 foreign address lost", "%d foreign addresses lost"},
		{p.Failed, "1 Failed event", "%d Failed events"},
		{refused, "1 event that a load balancer cannot be had", "%d events that a load balancer cannot be had"},
		{early, "1 call before the time that Azure had asked for", "%d calls before the time that Azure had asked for"},
	} {
		switch {
		case part.n == 1:
			parts = append(parts, part.singular)
		case part.n > 1:
			parts = append(parts, fmt.Sprintf(part.many, part.n))
		}
	}
	return strings.Join(parts, ", ")
}

// formatTable returns the lines of the final table.
func (s Summary) formatTable() []string {
	columns := append(append([]PoolSummary{}, s.Pools...), s.Total)
	columns[len(columns)-1].Name = "together"
	seconds := func(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }
	number := func(n int) string { return fmt.Sprint(n) }
	rows := []struct {
		name string
		cell func(PoolSummary) string
	}{
		{"", func(p PoolSummary) string { return p.Name }},
		{"changes in the cluster", func(p PoolSummary) string { return number(p.Changes) }},
		{"lag, median", func(p PoolSummary) string { return seconds(p.LagP50) }},
		{"lag, 99th percentile", func(p PoolSummary) string { return seconds(p.LagP99) }},
		{"lag in the storm, longest", func(p PoolSummary) string { return seconds(p.StormMax) }},
		{"writes of the pool", func(p PoolSummary) string { return number(p.Writes) }},
		{"  throttled (429)", func(p PoolSummary) string { return number(p.Throttled) }},
		{"  conflicts (409, 412)", func(p PoolSummary) string { return number(p.Conflicts) }},
		{"Retrying events", func(p PoolSummary) string { return number(p.Retrying) }},
		{"Failed events", func(p PoolSummary) string { return number(p.Failed) }},
		{"lost addresses", func(p PoolSummary) string { return number(p.Lost) }},
		{"surplus addresses", func(p PoolSummary) string { return number(p.Surplus) }},
		{"lost addresses of others", func(p PoolSummary) string { return number(p.ForeignLost) }},
	}
	var lines []string
	for _, row := range rows {
		line := fmt.Sprintf("%-34s", row.name)
		for _, column := range columns {
			line += fmt.Sprintf("%10s", row.cell(column))
		}
		lines = append(lines, line)
	}
	if s.Bulk != nil {
		lines = append(append(lines, ""), s.Bulk.formatLines()...)
	}
	if s.Evictions != nil {
		lines = append(append(lines, ""), s.Evictions.formatLines()...)
	}
	if s.PrivateLink != nil {
		lines = append(append(lines, ""), s.PrivateLink.formatLines()...)
	}
	if s.Gateway != nil {
		lines = append(append(lines, ""), s.Gateway.formatLines()...)
	}
	return lines
}
