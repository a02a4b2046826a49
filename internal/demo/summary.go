// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
	"time"
)

// Summary is what a run found. Durations are in milliseconds.
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
}

// PoolSummary is what became of one pool, or of all.
type PoolSummary struct {
	Name string `json:"name,omitempty"`
	// Changes is how often the cluster wanted something else in the pool.
	Changes int `json:"changes"`
	// Lags are the times from the API's own truth changing until the pool showed
	// it and Azure was done.
	LagP50 int64 `json:"lagP50Ms"`
	LagP99 int64 `json:"lagP99Ms"`
	LagMax int64 `json:"lagMaxMs"`
	Writes int   `json:"writes"`
	// Lost counts addresses that are missing at the end, and those that were taken
	// out while the cluster wanted them.
	Lost int `json:"lostAddresses"`
	// Surplus counts addresses at the end that the cluster does not want.
	Surplus int `json:"surplusAddresses"`
	// ForeignLost counts disappearances of addresses that somebody else put there.
	ForeignLost int `json:"foreignAddressesLost"`
}

// StepSummary is what one step of the story took.
type StepSummary struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	traffic
}

// summarize computes the verdict at now from what was observed.
func (o *observer) summarize(now time.Time) (all PoolSummary, pools []PoolSummary, arm traffic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lags []time.Duration
	for _, w := range workloads {
		h := o.pools[w.name]
		p := h.summary(now)
		p.Name, p.Writes = w.name, o.traffic.pools[w.pool()]
		pools = append(pools, p)
		lags = append(lags, h.lagsAt(now)...)
		all.Changes += p.Changes
		all.Lost += p.Lost
		all.Surplus += p.Surplus
		all.ForeignLost += p.ForeignLost
	}
	all.Writes = o.traffic.Writes
	all.measure(lags)
	return all, pools, o.traffic
}

func (h *poolHistory) summary(now time.Time) PoolSummary {
	g := h.gap()
	p := PoolSummary{
		Changes: h.changes, Lost: len(g.missing) + h.taken, Surplus: len(g.surplus),
		ForeignLost: max(h.foreignGone, len(g.foreignMissing)),
	}
	p.measure(h.lagsAt(now))
	return p
}

func (p *PoolSummary) measure(lags []time.Duration) {
	p.LagP50 = percentile(lags, 0.5).Milliseconds()
	p.LagP99 = percentile(lags, 0.99).Milliseconds()
	p.LagMax = percentile(lags, 1).Milliseconds()
}

// wrong says what the story found wrong; empty if nothing is.
func (p PoolSummary) wrong() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{p.Lost, "lost"}, {p.Surplus, "that should not be there"}, {p.ForeignLost, "of somebody else's lost"}} {
		switch {
		case part.n == 1:
			parts = append(parts, "1 address "+part.what)
		case part.n > 1:
			parts = append(parts, fmt.Sprintf("%d addresses %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// table returns the lines of the table at the end.
func (s Summary) table() []string {
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
		{"writes to Azure", func(p PoolSummary) string { return number(p.Writes) }},
		{"lost addresses", func(p PoolSummary) string { return number(p.Lost) }},
		{"surplus addresses", func(p PoolSummary) string { return number(p.Surplus) }},
		{"lost addresses of somebody else", func(p PoolSummary) string { return number(p.ForeignLost) }},
	}
	var lines []string
	for _, row := range rows {
		line := fmt.Sprintf("%-34s", row.name)
		for _, column := range columns {
			line += fmt.Sprintf("%10s", row.cell(column))
		}
		lines = append(lines, line)
	}
	return lines
}
