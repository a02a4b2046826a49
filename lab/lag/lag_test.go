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

	"weir.dev/weir/lab/armemu"
)

var write = flag.Bool("write", false, "write docs/reference/lag.md and its plots")

func weir(t *testing.T, trace Trace, strategy Strategy, latency armemu.Latency, share float64) (writes []Write) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if writes, err = trace.RunWeir(strategy, latency, share); err != nil {
			t.Fatal(err)
		}
	})
	return writes
}

// TestPage writes the page with -write (make bench).
func TestPage(t *testing.T) {
	if !*write {
		t.Skip("make bench writes the page")
	}
	var rows []ReportRow
	for _, strategy := range Strategies {
		for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
			for _, trace := range Traces() {
				cost := StrategyCost(strategy, latency)
				plans := trace.runPlans(cost)
				for _, share := range Shares {
					row := trace.newRow(plans, cost, latency, share, weir(t, trace, strategy, latency, share))
					t.Log(row)
					rows = append(rows, row)
				}
			}
		}
	}
	for name, content := range RenderPage(rows) {
		if err := os.WriteFile("../../docs/reference/"+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestChangesOnceInAWhileAreWrittenAtOnce(t *testing.T) {
	for _, trace := range []Trace{isolatedChanges(), frequentChanges()} {
		f := trace.ComputeStats(weir(t, trace, Serial, armemu.Quiet, 0.5))
		if limit := StrategyCost(Serial, armemu.Quiet).Busy; f.P50 > 2*time.Second || f.P99 > limit {
			t.Errorf("%s: median %s, longest %s", trace.Name, f.P50, f.P99)
		}
	}
}

func TestChurnStaysWithinTheShare(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	trace := steadyChanges()
	for _, tt := range []struct {
		share float64
		most  int
	}{{0.5, 500}, {0.1, 40 * 11}} { // for the second share, one write per interval exceeds it
		if f := trace.ComputeStats(weir(t, trace, Serial, armemu.Quiet, tt.share)); f.MaxPerWindow > tt.most {
			t.Errorf("share %v: %d writes in five minutes", tt.share, f.MaxPerWindow)
		}
	}
}

// Each cluster has half of the quota, for an hour. Overlapping writes are as many, so a quarter of an
// hour is enough.
func TestTwoShareASubscription(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for strategy, lasts := range map[Strategy]time.Duration{Serial: time.Hour, Overlapping: 15 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			emu := newAzure(armemu.Quiet)
			var clusters []*traceCluster
			var playing sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				c, err := newCluster(name, steadyChangesFor(lasts), emu, StrategyCost(strategy, armemu.Quiet), 0.5)
				if err != nil {
					t.Fatal(err)
				}
				clusters = append(clusters, c)
			}
			for _, c := range clusters {
				playing.Go(c.runTrace)
			}
			playing.Wait()
			for _, c := range clusters {
				f := c.trace.ComputeStats(c.writes)
				t.Logf("%s, %s: %d writes, %d in five minutes, %d refused, lag %s and %s", strategy, c.name, f.Writes, f.MaxPerWindow, c.throttled, f.P50, f.P99)
				if c.throttled > 0 || f.MaxPerWindow > 500 {
					t.Errorf("%s, %s: %d writes in five minutes, %d answers are 429", strategy, c.name, f.MaxPerWindow, c.throttled)
				}
			}
		})
	}
}

func TestLawClairvoyantEnclosesExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, limit int) int { return rapid.IntRange(least, limit).Draw(t, name) }
		trace, cost := smallTrace(draw("pools", 1, 3), draw("changes", 1, 5), draw), smallCost(rapid.SampledFrom(Strategies).Draw(t, "strategy"))
		exact, found, least := trace.Exact(cost), trace.runPlans(cost).FindBest(1000).Best.Average, trace.LowerBound(cost, 1000)
		if found < exact || least > exact {
			t.Fatalf("%s: found %s, and none is better than %s; at least %s", cost.Strategy, found, exact, least)
		}
	})
}

// On average.
func TestClairvoyantIsCloseToExact(t *testing.T) {
	const traces = 100
	for _, strategy := range Strategies {
		random := rand.New(rand.NewPCG(1, 2))
		draw := func(_ string, least, limit int) int { return least + random.IntN(limit-least+1) }
		ratio, cost := 0.0, smallCost(strategy)
		for range traces {
			trace := smallTrace(draw("pools", 1, 3), draw("changes", 1, 5), draw)
			ratio += float64(trace.runPlans(cost).FindBest(1000).Best.Average) / float64(trace.Exact(cost)) / traces
		}
		t.Logf("%s: %.3f times the best", strategy, ratio)
		if ratio > 1.05 {
			t.Errorf("%s: %.3f times the best", strategy, ratio)
		}
	}
}

func smallCost(strategy Strategy) Cost {
	c := Cost{Strategy: strategy, Effect: 2 * time.Second, Busy: 5 * time.Second}
	if strategy == Overlapping {
		c.Accept = time.Second
	}
	return c
}

// For exhaustive search.
func smallTrace(pools, changes int, draw func(name string, least, limit int) int) Trace {
	m := newTraceBuilder("small", "", 1, pools, 1)
	for range changes {
		m.changeNode(time.Duration(draw("ms", 0, 30000))*time.Millisecond, draw("pool", 0, len(m.Initial)-1), draw("node", 0, 9))
	}
	return m.buildTrace()
}

// Computed by hand.
func TestMeasure(t *testing.T) {
	m := newTraceBuilder("two", "", 1, 1, 1)
	m.changeNode(0, 0, 1)
	m.changeNode(10*time.Second, 0, 0)
	f := m.buildTrace().ComputeStats([]Write{{From: time.Second, Effect: 3 * time.Second}, {From: 20 * time.Second, Effect: 22 * time.Second}})
	if f.P50 != 3*time.Second || f.Average != 7500*time.Millisecond || f.Missing != 3 || f.Unwanted != 12 || f.MaxPerWindow != 2 {
		t.Errorf("%+v", f)
	}
}

func TestRevertedChanges(t *testing.T) {
	m := newTraceBuilder("back", "", 1, 1, 1)
	m.changeNode(0, 0, 1)
	m.changeNode(4*time.Second, 0, 1)
	trace := m.buildTrace()
	if f := trace.ComputeStats(nil); f.Missing != 4 || f.Average != 2*time.Second {
		t.Errorf("%+v", f)
	}
	cost := smallCost(Serial)
	if writes := (writePlan{debounce: 5 * time.Second}).runTrace(trace, cost); len(writes) != 0 {
		t.Errorf("%+v", writes)
	}
	if got := trace.Exact(cost); got > 2*time.Second {
		t.Errorf("%s is the least", got)
	}
}
