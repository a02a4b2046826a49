// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

const (
	interval = 30 * time.Second
	// step is the resolution of the simulation.
	step = 500 * time.Millisecond
	// quota and window are those of Microsoft.Network.
	quota, window = 1000, 5 * time.Minute
	// writeTime is how long a write takes in Azure.
	writeTime = 2 * time.Second
	// A burst lasts two minutes, and follows the last one after eight, on average.
	burst, meanPause = 2 * time.Minute, 8 * time.Minute
	// share is the configured share.
	share = ratelimit.DefaultShare
)

// Load is how the pools of a cluster change.
type Load int

// Loads of clusters.
const (
	// Steady changes each pool of a cluster every ten seconds, on average.
	Steady Load = iota
	// Bursty changes all pools of a cluster every second during bursts.
	Bursty
)

// String returns the name of a load.
func (l Load) String() string { return [...]string{"steady", "bursty"}[l] }

// Fleet is a scenario: one cluster is greedy, one is quiet, and the others have the load.
type Fleet struct {
	Clusters int
	Load     Load
	Seed     uint64
	// Lasts is the simulated time; the first half is not measured.
	Lasts time.Duration
}

// Result is what a simulation shows of its second half.
type Result struct {
	// Writes that Azure accepted, and 429s, of all clusters in five minutes: the means, and the most 429s.
	Writes, Throttled float64
	MaxThrottled      int
	// Fairness is Jain's index of the clusters that are not quiet.
	// Each one's writes are divided by its fair share.
	Fairness float64
	// QuietMedian and QuietP90 are the times of isolated changes of the quiet cluster.
	QuietMedian, QuietP90 time.Duration
	// Greedy are the writes of the greedy cluster in five minutes, and GreedyFair its fair share.
	Greedy, GreedyFair float64
}

// azure is the quota of Microsoft.Network: a fixed window, which opens with its first write.
type azure struct {
	opened time.Time
	count  int
}

func (a *azure) write(now time.Time) (retryAt time.Time, ok bool) {
	if now.Sub(a.opened) >= window {
		a.opened, a.count = now, 0
	}
	if a.count >= quota {
		return a.opened.Add(window), false
	}
	a.count++
	return time.Time{}, true
}

type pool struct {
	key       lb.PoolKey
	changedAt time.Time // when the oldest waiting change came; zero if none waits
	changes   int
	lastWrite time.Time
	busyUntil time.Time
	retryAt   time.Time
}

type cluster struct {
	budget *ratelimit.Budget
	pools  []*pool
	random *rand.Rand
	load   Load
	greedy bool
	quiet  bool
	// burstUntil is the end of the latest burst, and pause the time until the next.
	burstUntil, pause time.Duration
	written           int
	perWindow         []float64 // writes in each measured window
	throttled         int
	waits             []time.Duration
}

const (
	greedyPools = 40
	normalPools = 4
)

func (f Fleet) newClusters() []*cluster {
	clusters := make([]*cluster, f.Clusters)
	for i := range clusters {
		c := &cluster{
			budget: ratelimit.NewBudget(share, interval), random: rand.New(rand.NewPCG(f.Seed, uint64(i))), //nolint:gosec // a simulation
			greedy: i == 0, quiet: i == 1 && f.Clusters > 1, load: f.Load,
		}
		c.pause = time.Duration(c.random.ExpFloat64() * float64(meanPause))
		pools := normalPools
		switch {
		case c.greedy:
			pools = greedyPools
		case c.quiet:
			pools = 1
		}
		for n := range pools {
			c.pools = append(c.pools, &pool{key: lb.PoolKey(fmt.Sprintf("c%d/p%d", i, n))})
		}
		clusters[i] = c
	}
	return clusters
}

// rate returns the changes of a pool per second.
func (c *cluster) rate(since time.Duration) float64 {
	switch {
	case c.greedy:
		return 1
	case c.quiet:
		return 1.0 / 120
	case c.load == Steady:
		return 0.1
	}
	if since >= c.burstUntil+c.pause {
		c.burstUntil = since + burst
		c.pause = time.Duration(c.random.ExpFloat64() * float64(meanPause))
	}
	if since < c.burstUntil {
		return 1
	}
	return 0
}

// mean returns the writes in five minutes.
func (c *cluster) mean() float64 {
	sum := 0.0
	for _, n := range c.perWindow {
		sum += n
	}
	return sum / float64(len(c.perWindow))
}

func (c *cluster) step(a *azure, start, now time.Time) {
	rate := c.rate(now.Sub(start))
	for _, p := range c.pools {
		if c.random.Float64() < rate*step.Seconds() {
			if p.changedAt.IsZero() {
				p.changedAt = now
			}
			p.changes++
			c.budget.CountChange(p.key, "", now)
		}
	}
	if !slices.ContainsFunc(c.pools, func(p *pool) bool { return p.changes > 0 && !p.busyUntil.After(now) && !p.retryAt.After(now) }) {
		return
	}
	pace := c.budget.PaceAt(now)
	for _, p := range c.pools {
		if p.changes == 0 || p.busyUntil.After(now) || p.retryAt.After(now) || c.waitsForPace(p, pace, now) {
			continue
		}
		c.budget.CountWrite(now)
		retryAt, ok := a.write(now)
		if !ok {
			c.throttled++
			p.retryAt = retryAt
			c.budget.RecordThrottle(ratelimit.Throttle{Until: retryAt, Network: true, Resource: string(p.key)}, now)
			pace = c.budget.PaceAt(now)
			continue
		}
		c.budget.RecordAccepted()
		c.written++
		c.waits = append(c.waits, now.Add(writeTime).Sub(p.changedAt))
		p.changes, p.changedAt, p.lastWrite, p.busyUntil = 0, time.Time{}, now, now.Add(writeTime)
	}
}

// waitsForPace applies a schedule as internal/pool/schedule does.
func (c *cluster) waitsForPace(p *pool, pace ratelimit.Pace, now time.Time) bool {
	if p.lastWrite.IsZero() || now.Sub(p.lastWrite) >= ratelimit.MaxStretch*interval {
		return false
	}
	s := pace.ScheduleFor(p.key)
	if s.NotBefore.After(now) {
		return true
	}
	return p.lastWrite.Add(max(interval, s.Longest)).After(now) && p.changedAt.Add(s.HoldFor(p.changes)).After(now)
}

// Run simulates the fleet.
func (f Fleet) Run() Result {
	clusters := f.newClusters()
	r := f.run(clusters)
	alone := f.newClusters()
	for _, c := range alone {
		f.run([]*cluster{c})
	}
	shares := make([]float64, len(clusters))
	for n := range clusters[0].perWindow {
		demands := make([]float64, len(clusters))
		for i, c := range alone {
			demands[i] = c.perWindow[n]
		}
		for i, fair := range fairShares(demands) {
			shares[i] += fair / float64(len(clusters[0].perWindow))
		}
	}
	var got []float64
	for i, c := range clusters {
		if !c.quiet {
			got = append(got, c.mean()/shares[i])
		}
	}
	r.Fairness, r.Greedy, r.GreedyFair = jain(got), clusters[0].mean(), shares[0]
	return r
}

// run simulates these clusters.
func (f Fleet) run(clusters []*cluster) Result {
	a, start := &azure{}, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	half := f.Lasts / 2
	var r Result
	lastThrottled, windows := 0, 0
	for since := time.Duration(0); since < f.Lasts; since += step {
		now := start.Add(since)
		if since == half {
			for _, c := range clusters {
				c.written, c.throttled, c.waits = 0, 0, nil
			}
			lastThrottled = 0
		}
		for i := range clusters { // another one is first each time
			clusters[(i+int(since/step))%len(clusters)].step(a, start, now)
		}
		if since >= half && (since-half+step)%window == 0 {
			throttled := 0
			for _, c := range clusters {
				throttled += c.throttled
				c.perWindow, c.written = append(c.perWindow, float64(c.written)), 0
			}
			r.MaxThrottled = max(r.MaxThrottled, throttled-lastThrottled)
			lastThrottled = throttled
			windows++
		}
	}
	r.Throttled = float64(lastThrottled) / float64(windows)
	for _, c := range clusters {
		r.Writes += c.mean()
		if c.quiet {
			slices.Sort(c.waits)
			r.QuietMedian, r.QuietP90 = c.waits[len(c.waits)/2], c.waits[len(c.waits)*9/10]
		}
	}
	return r
}

// fairShares returns the max-min fair shares of the quota: a demand, or an equal part of what smaller demands leave.
func fairShares(demands []float64) []float64 {
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(demands[a], demands[b]) })
	shares, remaining := make([]float64, len(demands)), float64(quota)
	for n, i := range order {
		shares[i] = min(demands[i], remaining/float64(len(order)-n))
		remaining -= shares[i]
	}
	return shares
}

// jain returns Jain's fairness index.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	return sum * sum / (float64(len(x)) * squares)
}
