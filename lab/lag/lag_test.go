// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"flag"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/lab/armemu"
)

var write = flag.Bool("write", false, "write docs/reference/lag.md and its plots")

// weir plays a trace to Weir in a bubble.
func weir(t *testing.T, trace Trace, latency armemu.Latency, share float64) (writes []Write) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if writes, err = trace.Weir(latency, share); err != nil {
			t.Fatal(err)
		}
	})
	return writes
}

// TestPage plays all traces, prints what they come to and, with -write, writes the page. make
// bench does.
func TestPage(t *testing.T) {
	if !*write {
		t.Skip("make bench writes the page")
	}
	var rows []Row
	for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
		for _, share := range Shares {
			for _, trace := range Traces() {
				row := trace.Compare(latency, share, weir(t, trace, latency, share))
				t.Log(row)
				rows = append(rows, row)
			}
		}
	}
	for name, content := range Page(rows) {
		if err := os.WriteFile("../../docs/reference/"+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A change that comes alone takes as long as a write and Weir's wait for company, and five in a
// minute do, too.
func TestChangesOnceInAWhileAreWrittenAtOnce(t *testing.T) {
	for _, trace := range []Trace{isolated(), fewInAMinute()} {
		f := trace.Measure(weir(t, trace, armemu.Quiet, 0.5))
		if most := CostOf(armemu.Quiet).Busy; f.Median > 2*time.Second || f.P99 > most {
			t.Errorf("%s: median %s, longest %s", trace.Name, f.Median, f.P99)
		}
	}
}

// Of a share Weir spends what it is, and nobody meets a 429.
func TestChurnStaysWithinTheShare(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	trace := steadyChurn()
	for _, tt := range []struct {
		share float64
		most  int
	}{{0.5, 500}, {0.1, 40 * 11}} { // of the second one an interval is more than the share
		if f := trace.Measure(weir(t, trace, armemu.Quiet, tt.share)); f.Most > tt.most {
			t.Errorf("share %v: %d writes in five minutes", tt.share, f.Most)
		}
	}
}

// Two clusters change all the time, for an hour, in one subscription and as one identity, each with
// Weir and its half: neither meets a 429, and neither spends more than its share.
func TestTwoShareASubscription(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	synctest.Test(t, func(t *testing.T) {
		emu := newAzure(armemu.Quiet)
		var clusters []*cluster
		var playing sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			c, err := newCluster(name, churn(time.Hour), emu, armemu.Quiet, 0.5)
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
			t.Logf("%s: %d writes, %d in five minutes, %d refused, lag %s and %s", c.name, f.Writes, f.Most, c.refused, f.Median, f.P99)
			if c.refused > 0 || f.Most > 500 {
				t.Errorf("%s: %d writes in five minutes, %d answers are 429", c.name, f.Most, c.refused)
			}
		}
	})
}

// What is called clairvoyant is close to the best that there is, where all schedules can be tried,
// and what nobody goes below is below that.
func TestLawClairvoyantIsCloseToExact(t *testing.T) {
	cost := Cost{Effect: 2 * time.Second, Busy: 5 * time.Second}
	ratio, n := 0.0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newMaker("small", "", 1, rapid.IntRange(1, 3).Draw(t, "pools"), 1)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			m.toggle(time.Duration(rapid.IntRange(0, 30000).Draw(t, "ms"))*time.Millisecond, rapid.IntRange(0, len(m.First)-1).Draw(t, "pool"), rapid.IntRange(0, 9).Draw(t, "node"))
		}
		trace := m.done()
		exact, found, least := trace.Exact(cost), trace.Clairvoyant(cost, 1000).Mean, trace.AtLeast(cost, 1000)
		if found < exact || least > exact {
			t.Fatalf("found %s, and none is better than %s; at least %s", found, exact, least)
		}
		ratio, n = ratio+float64(found)/float64(exact), n+1
	})
	t.Logf("on average %.3f times the best", ratio/float64(n))
	if ratio/float64(n) > 1.1 {
		t.Errorf("on average %.3f times the best", ratio/float64(n))
	}
}

// By hand: one pool, two changes, one write each.
func TestMeasure(t *testing.T) {
	m := newMaker("two", "", 1, 1, 1)
	m.toggle(0, 0, 1)
	m.toggle(10*time.Second, 0, 0)
	f := m.done().Measure([]Write{{0, time.Second, 3 * time.Second}, {0, 20 * time.Second, 22 * time.Second}})
	if f.Median != 3*time.Second || f.Mean != 7500*time.Millisecond || f.Missing != 3 || f.Wrong != 12 || f.Most != 2 {
		t.Errorf("%+v", f)
	}
}
