// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/internal/wholewrite"
	"weir.dev/weir/lab/armemu"
)

// Shares are the shares of Azure's quota: Weir's default, and a small one.
var Shares = []float64{0.5, 0.1}

// Strategies are those available in Weir.
var Strategies = []wholewrite.Strategy{wholewrite.Serial, wholewrite.Pipelined, wholewrite.Whole}

// Row is one trace under one strategy, profile and budget.
type Row struct {
	Trace    string
	About    string
	Strategy wholewrite.Strategy
	Latency  armemu.Latency
	Share    float64
	// Weir, Found and Tick are the results of Weir, of the best schedule with foresight, and of
	// sequential writes at every interval.
	Weir  Figures
	Found Found
	Tick  Figures
	// AtLeast is the lower bound of the mean lag.
	AtLeast time.Duration
}

// compare returns Weir's result and those of other schedules.
func (t Trace) compare(all played, cost Cost, latency armemu.Latency, share float64, writes []Write) Row {
	budget, serial := int(share*quota), CostOf(wholewrite.Serial, latency)
	serial.Busy = max(serial.Busy, polled)
	r := Row{
		Trace: t.Name, About: t.About, Strategy: cost.Strategy, Latency: latency, Share: share,
		Weir: t.Measure(writes), Found: all.Clairvoyant(budget), Tick: t.Measure(plan{tick: Interval}.play(t, serial)),
	}
	r.AtLeast = t.AtLeast(cost, max(budget, r.Weir.Most, r.Found.Best.Most))
	return r
}

// polled is the minimum duration of a write whose operation is polled at Azure's interval.
const polled = 10 * time.Second

// quota is Azure's limit of writes per subscription and five minutes.
const quota = 1000

// String formats the row for make bench.
func (r Row) String() string {
	best := r.Found.Best
	return fmt.Sprintf("%-9s %-5s %2.0f%% %-29s median %6.1f = %.2f × best, p99 %6.1f = %.2f × best, mean %6.1f = %.2f × best; %d writes, %d in 5 min; tick: %.0f, %.0f",
		r.Strategy, r.Latency, 100*r.Share, r.Trace, r.Weir.Median.Seconds(), ratio(r.Weir.Median, best.Median), r.Weir.P99.Seconds(), ratio(r.Weir.P99, best.P99),
		r.Weir.Mean.Seconds(), ratio(r.Weir.Mean, best.Mean), r.Weir.Writes, r.Weir.Most, r.Tick.Median.Seconds(), r.Tick.P99.Seconds())
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// Page returns docs/reference/lag.md and its plots, by name.
func Page(rows []Row) map[string]string {
	files := map[string]string{}
	var b strings.Builder
	b.WriteString(head)
	told := map[string]bool{}
	for _, r := range rows {
		if !told[r.Trace] {
			told[r.Trace] = true
			fmt.Fprintf(&b, "| %s | %s |\n", r.Trace, r.About)
		}
	}
	for _, strategy := range Strategies {
		fmt.Fprintf(&b, "\n## `%s`\n\n%s", strategy, costs[strategy])
		for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
			for _, share := range Shares {
				fmt.Fprintf(&b, "\n### `%s`: latency profile `%s`, %.0f %% of the quota\n\n%s", strategy, latency, 100*share, columns)
				var some []Row
				for _, r := range rows {
					if r.Strategy == strategy && r.Latency == latency && r.Share == share {
						some = append(some, r)
						b.WriteString(r.markdown())
					}
				}
				name := fmt.Sprintf("lag-%s-%s-%.0f.svg", strategy, latency, 100*share)
				files[name] = plot(some)
				fmt.Fprintf(&b, "\n![lag of Weir and of others](%s)\n", name)
			}
		}
	}
	files["lag.md"] = b.String()
	return files
}

func (r Row) markdown() string {
	s := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
	best, blind := r.Found.Best, r.Found.Unforeseen
	return fmt.Sprintf("| %s | %s / %s / %s | %s / %s / %s | **%.2f** / **%.2f** / %.2f | %s / %s / %s | %.2f / %.2f / %.2f | %s / %s | %s | %s / %s | %.0f + %.0f | %.0f + %.0f | %d, %d |\n",
		r.Trace, s(r.Weir.Median), s(r.Weir.P99), s(r.Weir.Mean), s(best.Median), s(best.P99), s(best.Mean),
		ratio(r.Weir.Median, best.Median), ratio(r.Weir.P99, best.P99), ratio(r.Weir.Mean, best.Mean),
		s(blind.Median), s(blind.P99), s(blind.Mean), ratio(r.Weir.Median, blind.Median), ratio(r.Weir.P99, blind.P99), ratio(r.Weir.Mean, blind.Mean), s(r.Found.Median), s(r.Found.P99), s(r.AtLeast),
		s(r.Tick.Median), s(r.Tick.P99), r.Weir.Missing, r.Weir.Wrong, best.Missing, best.Wrong, r.Weir.Writes, r.Weir.Most)
}

const head = `# How long changes take

` + "`make bench`" + ` writes this page (` + "`lab/lag`" + `). The lanes and the Azure client that ship play
traces against the emulator, in virtual time, each operation taking the median of the latency
profile. Lag is from a change of what a pool wants until Azure acts on it, or until it is taken back.

Each trace is played with each ` + "`loadBalancerWriteStrategy`" + `, in an Azure that is known to allow
it, by ` + "`--azure-behaviour`" + `. Beside Weir stand

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

// costs describes the costs of the strategies.
var costs = map[wholewrite.Strategy]string{
	wholewrite.Serial: "A write is in force after 1.5 s (`quiet`) or 27 s (`busy`), and the next of its load balancer begins after 2 or 30 s.\n",
	wholewrite.Pipelined: `Azure accepts a write after a second, and the next of its row follows. A row is in force 1.5 or 27 s after
the last of it was accepted, and the next row begins after 2 or 30 s: Weir, and the clairvoyant, begin
none before one read has shown what became of the one before.
`,
	wholewrite.Whole: "As serial, but a write of several pools at once is in force after 3 or 27 s, and the next begins after 5 or 30 s.\n",
}

const columns = `| trace | Weir: median / p99 / mean in s | clairvoyant | ratio | no foresight | ratio | least | bound | tick | member-seconds missing + wrong | of the clairvoyant | writes, most in 5 min |
|---|---|---|---|---|---|---|---|---|---|---|---|
`
