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

func (t Trace) newRow(all planResults, cost Cost, latency armemu.Latency, share float64, writes []Write) ReportRow {
	budget, serial := int(share*writeQuota), StrategyCost(Serial, latency)
	serial.Busy = max(serial.Busy, minWriteTime)
	r := ReportRow{
		Trace: t.Name, Description: t.Description, Strategy: cost.Strategy, Latency: latency, Share: share,
		Weir: t.ComputeStats(writes), Found: all.FindBest(budget), Baseline: t.ComputeStats(writePlan{interval: Interval}.runTrace(t, serial)),
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
	best, blind := r.Found.Best, r.Found.NoForesight
	return fmt.Sprintf("| %s | %s / %s / %s | %s / %s / %s | **%.2f** / **%.2f** / %.2f | %s / %s / %s | %.2f / %.2f / %.2f | %s / %s | %s | %s / %s | %.0f + %.0f | %.0f + %.0f | %d, %d |\n",
		r.Trace, s(r.Weir.P50), s(r.Weir.P99), s(r.Weir.Average), s(best.P50), s(best.P99), s(best.Average),
		durationRatio(r.Weir.P50, best.P50), durationRatio(r.Weir.P99, best.P99), durationRatio(r.Weir.Average, best.Average),
		s(blind.P50), s(blind.P99), s(blind.Average), durationRatio(r.Weir.P50, blind.P50), durationRatio(r.Weir.P99, blind.P99), durationRatio(r.Weir.Average, blind.Average), s(r.Found.P50), s(r.Found.P99), s(r.LowerBound),
		s(r.Baseline.P50), s(r.Baseline.P99), r.Weir.Missing, r.Weir.Unwanted, best.Missing, best.Unwanted, r.Weir.Writes, r.Weir.MaxPerWindow)
}

const pageHeader = `# How long changes take

` + "`make bench`" + ` writes this page (` + "`lab/lag`" + `). The lanes and the Azure client that ship play
traces against the emulator, in virtual time, each operation taking the median of the latency
profile. Lag is from a change of what a pool wants until Azure acts on it, or until it is taken back.

Each trace is played with writes that overlap, in an Azure that accepts them, and with
` + "`loadBalancerWriteStrategy: serial`" + `. Beside Weir stand

- **clairvoyant**: one schedule, the one of the least mean lag that was found for who knows the future, of
  the same strategy, and bound to what Weir is: no more than its share in any five minutes, unless no pool
  has more than one write an interval. On small traces, where every schedule of a strategy can be
  tried, it is never better than the best, and on average within a twentieth of it.
- **no foresight**: of the schedules that were tried those that do not know the future, with their constants
  fitted to this very trace, which nobody can do before it is over: the one of the least mean lag.
- **least**: the least median, and the least p99, of all such schedules, each whatever the other is. Some
  have half of the changes in Azure soon by starving the other half.
- **bound**: a mean lag that no schedule of the strategy goes below, whatever it knows.
- **tick**: every 30 s what waits is written, one pool after the other, each followed by polls every ten seconds.

The end of a write is seen by what was written, two and five seconds after its acceptance, and by its operation
every ten ([0054](../design/0054-the-end-of-a-write-is-seen-in-what-was-written.md)).

| trace | |
|---|---|
`

var costDescriptions = map[Strategy]string{
	Serial: "A write is in force after 1.5 s (`quiet`) or 27 s (`busy`), and the next of its load balancer begins after 2 or 30 s.\n",
	Overlapping: `Azure accepts a write after a second, and the next of its group follows. A row is in force 1.5 or 27 s after
the last of it was accepted, and the next row begins after 2 or 30 s: Weir, and the clairvoyant, begin
none before one read has shown what became of the one before.
`,
}

const tableHeader = `| trace | Weir: median / p99 / mean in s | clairvoyant | ratio | no foresight | ratio | least | bound | tick | member-seconds missing + wrong | of the clairvoyant | writes, most in 5 min |
|---|---|---|---|---|---|---|---|---|---|---|---|
`
