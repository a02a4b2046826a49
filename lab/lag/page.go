// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Shares of Azure's quota: Weir's default, and a small one.
var Shares = []float64{0.5, 0.1}

// Strategies are those available in Weir.
var Strategies = []Strategy{Serial, Overlapping}

// ReportRow is one trace under one strategy, profile and budget.
type ReportRow struct {
	Trace       string
	Description string
	Strategy    Strategy
	Latency     armemu.Latency
	Share       float64
	// Tick writes sequentially at every interval.
	Weir     Stats
	Found    BestResult
	Baseline Stats
	// LowerBound bounds the mean lag.
	LowerBound time.Duration
}

func (t Trace) newRow(results planResults, cost Cost, latency armemu.Latency, share float64, writes []Write) ReportRow {
	budget, serial := int(share*writeQuota), StrategyCost(Serial, latency)
	serial.Busy = max(serial.Busy, minWriteTime)
	r := ReportRow{
		Trace: t.Name, Description: t.Description, Strategy: cost.Strategy, Latency: latency, Share: share,
		Weir: t.ComputeStats(writes), Found: results.FindBest(budget), Baseline: t.ComputeStats(writePlan{interval: Interval}.runTrace(t, serial)),
	}
	r.LowerBound = t.LowerBound(cost, max(budget, r.Weir.MaxPerWindow, r.Found.Best.MaxPerWindow))
	return r
}

// minWriteTime is the shortest write with polls at Azure's interval.
const minWriteTime = 10 * time.Second

// writeQuota is per subscription and five minutes.
const writeQuota = 1000

// String formats the row for make bench.
func (r ReportRow) String() string {
	best := r.Found.Best
	return fmt.Sprintf("%-9s %-5s %2.0f%% %-29s median %6.1f = %.2f × best, p99 %6.1f = %.2f × best, mean %6.1f = %.2f × best; %d writes, %d in 5 min; tick: %.0f, %.0f",
		r.Strategy, r.Latency, 100*r.Share, r.Trace, r.Weir.P50.Seconds(), durationRatio(r.Weir.P50, best.P50), r.Weir.P99.Seconds(), durationRatio(r.Weir.P99, best.P99),
		r.Weir.Average.Seconds(), durationRatio(r.Weir.Average, best.Average), r.Weir.Writes, r.Weir.MaxPerWindow, r.Baseline.P50.Seconds(), r.Baseline.P99.Seconds())
}

func durationRatio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// RenderPage returns docs/reference/lag.md and its plots, by name.
func RenderPage(rows []ReportRow) map[string]string {
	files := map[string]string{}
	var b strings.Builder
	b.WriteString(pageHeader)
	described := map[string]bool{}
	for _, r := range rows {
		if !described[r.Trace] {
			described[r.Trace] = true
			fmt.Fprintf(&b, "| %s | %s |\n", r.Trace, r.Description)
		}
	}
	for _, strategy := range Strategies {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s", strategy, costDescriptions[strategy])
		for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
			for _, share := range Shares {
				fmt.Fprintf(&b, "\n### `%s`: latency profile `%s`, %.0f %% of the quota\n\n%s", strategy, latency, 100*share, tableHeader)
				var some []ReportRow
				for _, r := range rows {
					if r.Strategy == strategy && r.Latency == latency && r.Share == share {
						some = append(some, r)
						b.WriteString(r.formatRow())
					}
				}
				name := fmt.Sprintf("lag-%s-%s-%.0f.svg", strategy, latency, 100*share)
				files[name] = renderChart(some)
				fmt.Fprintf(&b, "\n![lag of Weir and of others](%s)\n", name)
			}
		}
	}
	files["lag.md"] = b.String()
	return files
}

func (r ReportRow) formatRow() string {
	s := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
	best := r.Found.Best
	return fmt.Sprintf("| %s | %s / %s / %s | %s / %s / %s | %s | %s / %s | %.2f | %d | %d, %.0f %% |\n",
		r.Trace, s(r.Weir.P50), s(r.Weir.P99), s(r.Weir.Average), s(best.P50), s(best.P99), s(best.Average), s(r.LowerBound),
		s(r.Baseline.P50), s(r.Baseline.P99), durationRatio(r.Weir.Average, best.Average), r.Weir.Writes, r.Weir.MaxPerWindow, 100*float64(r.Weir.MaxPerWindow)/(r.Share*writeQuota))
}

const pageHeader = `# How long changes take

` + "`make bench`" + ` writes this page (` + "`lab/lag`" + `). The pool updater and the Azure client that ship play traces against the emulator, in virtual
time; each operation takes the median of the latency profile. Lag is the time from a change of what a pool wants until Azure acts
on it, or until the change is reverted. Weir is compared with

- **clairvoyant**: the schedule with the least mean lag that was found, of the same strategy, which knows the future. It has the
  same share of the quota. *ratio*: Weir's mean lag divided by its.
- **bound**: a mean lag that no schedule of the strategy goes below.
- **tick**: every 30 s what waits is written, one pool after the other, each followed by polls every ten seconds.

All pools are of one namespace. Where the most writes in five minutes reach the share, it binds; above it each pool
is written at most once per interval.

| trace | |
|---|---|
`

var costDescriptions = map[Strategy]string{
	Serial: "Each write waits for the end of the one before: with `loadBalancerWriteStrategy: serial`, and where Azure rejects or\ndiscards overlapping writes. A write is in force after 1.5 s (`quiet`) or 27 s (`busy`), and the next of its\nload balancer begins after 2 or 30 s.\n",
	Overlapping: `The default. Azure accepts a write after a second, and the next of its group follows. A row is in force 1.5 or 27 s after
the last of it was accepted, and the next row begins after 2 or 30 s, once a read has shown the result of the one before.
`,
}

const tableHeader = `| trace | Weir: median / p99 / mean in s | clairvoyant | bound | tick | ratio | writes | most in 5 min, of the share |
|---|---|---|---|---|---|---|---|
`
