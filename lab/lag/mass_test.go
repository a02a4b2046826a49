// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// massStory is something that changes many pools of one load balancer.
type massStory struct {
	name    string
	pools   int
	changes []massChange
	// Bounds where Azure keeps overtaken writes.
	median, longest time.Duration
	writes          int
	// before is how often all pools have changed before.
	before int
}

// massChange changes pools at a time: a node is tainted or returns, or members change.
type massChange struct {
	at      time.Duration
	pools   []int
	down    bool
	node    int
	isAdmin bool
}

func allPools(n int) []int {
	pools := make([]int, n)
	for i := range pools {
		pools[i] = i
	}
	return pools
}

func massStories() []massStory {
	var once, nodes, rolling, inTurn []massChange
	for p := range 100 {
		once = append(once, massChange{pools: []int{p}, node: 40})
	}
	for n := range 20 {
		nodes = append(nodes, massChange{at: time.Duration(n) * 100 * time.Millisecond, pools: allPools(20), down: true, node: n, isAdmin: true})
	}
	for n := range 120 {
		rolling = append(rolling, massChange{at: time.Duration(n) * 500 * time.Millisecond, pools: []int{n * 7 % 10}, node: 40 + n/10})
	}
	for n := range 120 {
		inTurn = append(inTurn, massChange{at: time.Duration(n) * 500 * time.Millisecond, pools: []int{n / 12}, node: 40 + n%12})
	}
	return []massStory{
		{"100 Services change at once", 100, once, 5 * time.Second, 5 * time.Second, 100, 0},
		{"a node of 10 pools is tainted", 10, []massChange{{pools: allPools(10), down: true, node: 1, isAdmin: true}}, 3 * time.Second, 5 * time.Second, 10, 0},
		{"the taint is removed", 10, []massChange{{pools: allPools(10), down: true, node: 1, isAdmin: true}, {at: time.Minute, pools: allPools(10), node: 1, isAdmin: true}}, 3 * time.Second, 5 * time.Second, 20, 0},
		{"20 nodes are tainted within 2 s, 20 pools", 20, nodes, 4 * time.Second, 8 * time.Second, 60, 0},
		{"the first rolling changes of a process for 60 s on 10 pools", 10, rolling, 5 * time.Second, 15 * time.Second, 100, 0},
		{"later ones", 10, rolling, 3500 * time.Millisecond, 5 * time.Second, 120, 3},
		{"later ones, one pool after the other", 10, inTurn, 4500 * time.Millisecond, 9 * time.Second, 36, 3},
	}
}

// massResult is what a story took.
type massResult struct {
	median, longest   time.Duration
	puts, gets, polls int
}

// playMass runs a story over the shipped updater and client.
func playMass(t *testing.T, explanation massStory, strategy Strategy, overlap behavior.Result) (r massResult) {
	synctest.Test(t, func(t *testing.T) {
		m := newTraceBuilder("mass", "", 1, explanation.pools, 30)
		azure := behavior.Behavior{Overlap: overlap}.WithDefaults(behavior.AssumedBehavior())
		emu := patient.Watch(t, armemu.New(armemu.Options{Seed: 1, LatencyScale: 1, Latency: armemu.Quiet, LatencyFixed: true, Throttle: armemu.AzureLimits(), CallLogCap: 1, Behavior: azure}))
		c, err := newCluster("lb", m.buildTrace(), emu, Cost{Strategy: strategy, Accept: 10 * time.Millisecond, Effect: 2 * time.Second}, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		c.down = make([]nodeSet, explanation.pools)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { c.updater.Run(ctx); close(ended) }()
		for n := range explanation.before { // the process learns what becomes of overtaken writes
			c.makeChange(massChange{pools: allPools(explanation.pools), node: 36 + n}, 0)
			time.Sleep(time.Minute)
		}
		time.Sleep(time.Hour) // nothing waits for its pace
		c.mu.Lock()
		c.start, c.writes, c.puts, c.gets, c.polls = time.Now(), nil, 0, 0, 0
		c.mu.Unlock()
		step := 50 * time.Millisecond
		if overlap != behavior.Supersede {
			step = time.Second
		}
		lags := c.runMass(t, explanation, step)
		time.Sleep(time.Minute)
		stop()
		<-ended
		r = massResult{lags[len(lags)/2], lags[len(lags)-1], c.puts, c.gets, c.polls}
	})
	return r
}

// pendingChange is a change of a pool that is not in force.
type pendingChange struct {
	pool int
	at   time.Duration
	want []lb.Address
}

// runMass returns the sorted lags of all changes of a pool.
func (c *traceCluster) runMass(t *testing.T, explanation massStory, step time.Duration) (lags []time.Duration) {
	var open []pendingChange
	next := 0
	for next < len(explanation.changes) || len(open) > 0 {
		now := time.Since(c.start)
		for next < len(explanation.changes) && explanation.changes[next].at <= now {
			open = append(open, c.makeChange(explanation.changes[next], now)...)
			next++
		}
		open = slices.DeleteFunc(open, func(p pendingChange) bool {
			if !c.isInForce(p, now) {
				return false
			}
			lags = append(lags, now-p.at)
			return true
		})
		if now > 30*time.Minute {
			t.Fatalf("%s: %d changes never arrive", explanation.name, len(open))
		}
		time.Sleep(step)
	}
	slices.Sort(lags)
	return lags
}

func (c *traceCluster) makeChange(change massChange, now time.Duration) (changes []pendingChange) {
	var ops []schedule.Operation
	for _, p := range change.pools {
		c.mu.Lock()
		switch {
		case change.isAdmin && change.down:
			c.down[p] = c.down[p].withNode(change.node)
		case change.isAdmin:
			c.down[p] = c.down[p].withoutNode(change.node)
		default:
			c.desired[p] = c.desired[p].withNode(change.node)
		}
		changes = append(changes, pendingChange{p, now, slices.DeleteFunc(c.wantedAddresses(p), func(a lb.Address) bool { return a.Name != fmt.Sprintf("n%d", change.node) })})
		c.mu.Unlock()
		op := c.newOperation(Change{Pool: p}, nodeSet{})
		if op.Admin, op.Impact = change.isAdmin, (schedule.Impact{Serving: 29, Starting: 1}); change.down {
			op.Impact = schedule.Impact{Serving: 29, Stopping: 1}
		}
		ops = append(ops, op)
	}
	c.updater.Add(ops...)
	return changes
}

// isInForce reports whether Azure shows the changed member of a pool, and no write of it is running.
func (c *traceCluster) isInForce(p pendingChange, now time.Duration) bool {
	c.mu.Lock()
	written, running := false, false
	for _, w := range c.writes {
		if w.Pool == p.pool && w.From >= p.at {
			written, running = true, running || w.Effect > now
		}
	}
	c.mu.Unlock()
	if !written || running {
		return false
	}
	text, _ := c.azure.Get(c.poolID(p.pool).String())
	var pool struct {
		Properties struct {
			Addresses []struct {
				Name       string
				Properties struct{ AdminState string }
			} `json:"loadBalancerBackendAddresses"`
		}
	}
	if err := json.Unmarshal(text, &pool); err != nil {
		panic(err)
	}
	return slices.ContainsFunc(pool.Properties.Addresses, func(a struct {
		Name       string
		Properties struct{ AdminState string }
	}) bool {
		return a.Name == p.want[0].Name && (a.Properties.AdminState == "Down") == (p.want[0].AdminState == lb.Down)
	})
}

// String is a cell of the table.
func (r massResult) String() string {
	return fmt.Sprintf("%.1f / %.1f s, %d", r.median.Seconds(), r.longest.Seconds(), r.puts)
}

// The bounds where Azure keeps overtaken writes. In the other worlds the figures are written to the reference with -write.
func TestMassChanges(t *testing.T) {
	answers := []behavior.Result{behavior.Supersede, behavior.SupersedeDiscard, behavior.SupersedeDiscardLate, behavior.Lock, behavior.Conflict, behavior.Mixed}
	if testing.Short() {
		answers = answers[:1]
	}
	table := "| | serial |"
	for _, overlap := range answers {
		table += fmt.Sprintf(" `%s` |", overlap)
	}
	table += "\n|" + strings.Repeat("---|", len(answers)+2) + "\n"
	for _, explanation := range massStories() {
		serial := playMass(t, explanation, Serial, behavior.Supersede)
		table += fmt.Sprintf("| %s | %s |", explanation.name, serial)
		for _, overlap := range answers {
			r := playMass(t, explanation, Overlapping, overlap)
			table += fmt.Sprintf(" %s |", r)
			t.Logf("%-45s %-25s %s PUT, %d GET", explanation.name, overlap, r, r.gets)
			if overlap == behavior.Supersede && (r.median > explanation.median || r.longest > explanation.longest || r.puts > explanation.writes) {
				t.Errorf("%s: want %s and %s at most, and %d PUT", explanation.name, explanation.median, explanation.longest, explanation.writes)
			}
		}
		table += "\n"
	}
	if *write && !testing.Short() {
		writeMassTable(t, table)
	}
}

// An isolated change costs one read, one write, and one read that shows its end.
func TestIsolatedChange(t *testing.T) {
	change := massStory{name: "an isolated change", pools: 10, changes: []massChange{{pools: []int{3}, node: 40}}}
	for _, strategy := range Strategies {
		r := playMass(t, change, strategy, behavior.Supersede)
		t.Logf("%s: %s PUT, %d GET, %d polls", strategy, r, r.gets, r.polls)
		if r.puts != 1 || r.gets > 2 || r.polls > 1 || r.longest > 2400*time.Millisecond {
			t.Errorf("%s: %+v", strategy, r)
		}
	}
}

// writeMassTable replaces the table in the reference.
func writeMassTable(t *testing.T, table string) {
	t.Helper()
	const page, begin, end = "../../docs/reference/updater.md", "<!-- mass changes: begin, rendered by go test ./lab/lag -run MassChanges -args -write -->\n", "<!-- mass changes: end -->"
	raw, err := os.ReadFile(page)
	before, rest, found := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)
	if err != nil || !found || !closed {
		t.Fatal("no place for the table", err)
	}
	if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
