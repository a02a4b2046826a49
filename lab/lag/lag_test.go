// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"flag"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/wholewrite"
	"weir.dev/weir/lab/armemu"
)

var write = flag.Bool("write", false, "write docs/reference/lag.md and its plots")

// weir runs a trace with Weir in a bubble.
func weir(t *testing.T, trace Trace, strategy wholewrite.Strategy, latency armemu.Latency, share float64) (writes []Write) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if writes, err = trace.Weir(strategy, latency, share); err != nil {
			t.Fatal(err)
		}
	})
	return writes
}

// TestPage runs all traces, prints the results and, with -write (make bench), writes the page.
func TestPage(t *testing.T) {
	if !*write {
		t.Skip("make bench writes the page")
	}
	var rows []Row
	for _, strategy := range Strategies {
		for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
			for _, trace := range Traces() {
				cost := CostOf(strategy, latency)
				all := trace.plays(cost)
				for _, share := range Shares {
					row := trace.compare(all, cost, latency, share, weir(t, trace, strategy, latency, share))
					t.Log(row)
					rows = append(rows, row)
				}
			}
		}
	}
	for name, content := range Page(rows) {
		if err := os.WriteFile("../../docs/reference/"+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A single change takes one write plus the debounce time, also at five per minute.
func TestChangesOnceInAWhileAreWrittenAtOnce(t *testing.T) {
	for _, trace := range []Trace{isolated(), fewInAMinute()} {
		f := trace.Measure(weir(t, trace, wholewrite.Serial, armemu.Quiet, 0.5))
		if most := CostOf(wholewrite.Serial, armemu.Quiet).Busy; f.Median > 2*time.Second || f.P99 > most {
			t.Errorf("%s: median %s, longest %s", trace.Name, f.Median, f.P99)
		}
	}
}

// Weir remains within its share and gets no 429.
func TestChurnStaysWithinTheShare(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	trace := steadyChurn()
	for _, tt := range []struct {
		share float64
		most  int
	}{{0.5, 500}, {0.1, 40 * 11}} { // for the second share, one write per interval exceeds it
		if f := trace.Measure(weir(t, trace, wholewrite.Serial, armemu.Quiet, tt.share)); f.Most > tt.most {
			t.Errorf("share %v: %d writes in five minutes", tt.share, f.Most)
		}
	}
}

// Two clusters in one subscription with one identity change continuously for an hour, each with
// half of the quota: no 429, and neither exceeds its share. Pipelined writes are as many, so a
// quarter of an hour is enough.
func TestTwoShareASubscription(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for strategy, lasts := range map[wholewrite.Strategy]time.Duration{wholewrite.Serial: time.Hour, wholewrite.Pipelined: 15 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			emu := newAzure(armemu.Quiet)
			var clusters []*cluster
			var playing sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				c, err := newCluster(name, churn(lasts), emu, CostOf(strategy, armemu.Quiet), 0.5)
				if err != nil {
					t.Fatal(err)
				}
				clusters = append(clusters, c)
			}
			for _, c := range clusters {
				playing.Go(c.play)
			}
			playing.Wait()
			for _, c := range clusters {
				f := c.trace.Measure(c.writes)
				t.Logf("%s, %s: %d writes, %d in five minutes, %d refused, lag %s and %s", strategy, c.name, f.Writes, f.Most, c.refused, f.Median, f.P99)
				if c.refused > 0 || f.Most > 500 {
					t.Errorf("%s, %s: %d writes in five minutes, %d answers are 429", strategy, c.name, f.Most, c.refused)
				}
			}
		})
	}
}

// The clairvoyant result is never better than the optimum of small traces, and the lower bound is
// below it.
func TestLawClairvoyantEnclosesExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		trace, cost := smallTrace(draw("pools", 1, 3), draw("changes", 1, 5), draw), smallCost(rapid.SampledFrom(Strategies).Draw(t, "strategy"))
		exact, found, least := trace.Exact(cost), trace.plays(cost).Clairvoyant(1000).Best.Mean, trace.AtLeast(cost, 1000)
		if found < exact || least > exact {
			t.Fatalf("%s: found %s, and none is better than %s; at least %s", cost.Strategy, found, exact, least)
		}
	})
}

// On average the clairvoyant result is close to the optimum.
func TestClairvoyantIsCloseToExact(t *testing.T) {
	const traces = 100
	for _, strategy := range Strategies {
		random := rand.New(rand.NewPCG(1, 2))
		draw := func(_ string, least, most int) int { return least + random.IntN(most-least+1) }
		ratio, cost := 0.0, smallCost(strategy)
		for range traces {
			trace := smallTrace(draw("pools", 1, 3), draw("changes", 1, 5), draw)
			ratio += float64(trace.plays(cost).Clairvoyant(1000).Best.Mean) / float64(trace.Exact(cost)) / traces
		}
		t.Logf("%s: %.3f times the best", strategy, ratio)
		if ratio > 1.05 {
			t.Errorf("%s: %.3f times the best", strategy, ratio)
		}
	}
}

func smallCost(strategy wholewrite.Strategy) Cost {
	c := Cost{Strategy: strategy, Effect: 2 * time.Second, Whole: 3 * time.Second, Busy: 5 * time.Second}
	if strategy == wholewrite.Pipelined {
		c.Accept = time.Second
	}
	return c
}

// smallTrace is a trace small enough for exhaustive search.
func smallTrace(pools, changes int, draw func(name string, least, most int) int) Trace {
	m := newMaker("small", "", 1, pools, 1)
	for range changes {
		m.toggle(time.Duration(draw("ms", 0, 30000))*time.Millisecond, draw("pool", 0, len(m.First)-1), draw("node", 0, 9))
	}
	return m.done()
}

// Computed by hand: one pool, two changes, one write each.
func TestMeasure(t *testing.T) {
	m := newMaker("two", "", 1, 1, 1)
	m.toggle(0, 0, 1)
	m.toggle(10*time.Second, 0, 0)
	f := m.done().Measure([]Write{{From: time.Second, Effect: 3 * time.Second}, {From: 20 * time.Second, Effect: 22 * time.Second}})
	if f.Median != 3*time.Second || f.Mean != 7500*time.Millisecond || f.Missing != 3 || f.Wrong != 12 || f.Most != 2 {
		t.Errorf("%+v", f)
	}
}

// A change reverted before a write lasts until then, and needs no write.
func TestWhatIsTakenBackIsOver(t *testing.T) {
	m := newMaker("back", "", 1, 1, 1)
	m.toggle(0, 0, 1)
	m.toggle(4*time.Second, 0, 1)
	trace := m.done()
	if f := trace.Measure(nil); f.Missing != 4 || f.Mean != 2*time.Second {
		t.Errorf("%+v", f)
	}
	cost := smallCost(wholewrite.Serial)
	if writes := (plan{company: 5 * time.Second}).play(trace, cost); len(writes) != 0 {
		t.Errorf("%+v", writes)
	}
	if got := trace.Exact(cost); got > 2*time.Second {
		t.Errorf("%s is the least", got)
	}
}
