// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Shares are how much of Azure's quota Weir spends: what it does by default, and little.
var Shares = []float64{0.5, 0.1}

// Row is one trace under one profile and budget.
type Row struct {
	Trace   string
	About   string
	Latency armemu.Latency
	Share   float64
	// Weir is what Weir has come to, Best what was found for who knows the future with as many
	// writes, and Tick what a tick of the interval has that writes one after the other.
	Weir, Best, Tick Figures
	// AtLeast is a mean lag that nobody goes below.
	AtLeast time.Duration
}

// Compare puts what Weir has written beside other schedules. Where one write an interval for each
// pool is more than the share, they may write as much as Weir.
func (t Trace) Compare(latency armemu.Latency, share float64, writes []Write) Row {
	cost, weir := CostOf(latency), t.Measure(writes)
	budget := max(int(share*1000), weir.Most)
	return Row{
		Trace: t.Name, About: t.About, Latency: latency, Share: share, Weir: weir,
		Best: t.Clairvoyant(cost, budget), Tick: t.Measure(plan{tick: Interval}.play(t, cost)), AtLeast: t.AtLeast(cost, budget),
	}
}

// String implements fmt.Stringer: the row as make bench prints it.
func (r Row) String() string {
	return fmt.Sprintf("%-5s %2.0f%% %-30s median %6.1f = %.2f × best, p99 %6.1f = %.2f × best, mean %6.1f = %.2f × bound; %d writes, %d in 5 min; tick: %.0f, %.0f",
		r.Latency, 100*r.Share, r.Trace, r.Weir.Median.Seconds(), ratio(r.Weir.Median, r.Best.Median), r.Weir.P99.Seconds(), ratio(r.Weir.P99, r.Best.P99),
		r.Weir.Mean.Seconds(), ratio(r.Weir.Mean, r.AtLeast), r.Weir.Writes, r.Weir.Most, r.Tick.Median.Seconds(), r.Tick.P99.Seconds())
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
	for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
		for _, share := range Shares {
			cost := CostOf(latency)
			fmt.Fprintf(&b, "\n## Latency profile `%s`, %.0f %% of the quota\n\n", latency, 100*share)
			fmt.Fprintf(&b, "A write is in force after %s, and the next of its load balancer begins after %s.\n\n", cost.Effect, cost.Busy)
			b.WriteString(columns)
			var some []Row
			for _, r := range rows {
				if r.Latency == latency && r.Share == share {
					some = append(some, r)
					b.WriteString(r.markdown())
				}
			}
			name := fmt.Sprintf("lag-%s-%.0f.svg", latency, 100*share)
			files[name] = plot(some)
			fmt.Fprintf(&b, "\n![lag of Weir and of others](%s)\n", name)
		}
	}
	files["lag.md"] = b.String()
	return files
}

func (r Row) markdown() string {
	s := func(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
	return fmt.Sprintf("| %s | %s / %s | %s / %s | **%.2f** / **%.2f** | %s / %s | %s, %.2f | %.0f + %.0f | %.0f + %.0f | %d, %d |\n",
		r.Trace, s(r.Weir.Median), s(r.Weir.P99), s(r.Best.Median), s(r.Best.P99), ratio(r.Weir.Median, r.Best.Median), ratio(r.Weir.P99, r.Best.P99),
		s(r.Tick.Median), s(r.Tick.P99), s(r.Weir.Mean), ratio(r.Weir.Mean, r.AtLeast),
		r.Weir.Missing, r.Weir.Wrong, r.Best.Missing, r.Best.Wrong, r.Weir.Writes, r.Weir.Most)
}

const head = `# How long changes take

` + "`make bench`" + ` writes this page (` + "`lab/lag`" + `). The lanes and the Azure client that ship play
traces against the emulator, in virtual time, each operation taking the median of the latency
profile. Lag is from a change of what a pool wants until Azure acts on it.

Beside Weir stand

- **clairvoyant**: the best that was found for who knows the future, with as many writes in any
  five minutes and one write of a load balancer at a time. Each figure is the best of its own. On small
  traces, where every schedule can be tried, it is within a tenth of the best mean there is.
- **bound**: a mean lag that no schedule of serial writes goes below, whatever it knows.
- **tick**: every 30 s what waits is written, one pool after the other.

Where one write an interval for each busy pool is more than the share, that is what Weir writes, and
the clairvoyant may write as much.

| trace | |
|---|---|
`

const columns = `| trace | Weir, median / p99 in s | clairvoyant | ratio | tick | mean in s, × bound | member-seconds missing + wrong | of the clairvoyant | writes, most in 5 min |
|---|---|---|---|---|---|---|---|---|
`
