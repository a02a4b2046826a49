// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// Trace is a sequence of changes of pools.
type Trace struct {
	Name, Description string
	// LoadBalancers maps pools to load balancers.
	LoadBalancers []int
	// Initial members are already in Azure.
	Initial []nodeSet
	// Sorted by time.
	Changes []Change
	// Duration is long enough to finish the last change.
	Duration time.Duration
}

// Change is one change of a pool.
type Change struct {
	At   time.Duration
	Pool int
	Want nodeSet
}

// nodeSet is a set of node numbers.
type nodeSet [2]uint64

func (s nodeSet) withNode(n int) nodeSet {
	s[n/64] |= 1 << (n % 64)
	return s
}

func (s nodeSet) withoutNode(n int) nodeSet {
	s[n/64] &^= 1 << (n % 64)
	return s
}

func (s nodeSet) hasNode(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

func (s nodeSet) countMissing(other nodeSet) int {
	return bits.OnesCount64(s[0]&^other[0]) + bits.OnesCount64(s[1]&^other[1])
}

func (s nodeSet) countCommon(other nodeSet) int {
	return bits.OnesCount64(s[0]&other[0]) + bits.OnesCount64(s[1]&other[1])
}

const maxNodes = 128

type traceBuilder struct {
	Trace
	random  *rand.Rand
	members []nodeSet
}

// newTraceBuilder spreads the pools over the load balancers; all start with the first nodes.
func newTraceBuilder(name, about string, balancers, pools, nodes int) *traceBuilder {
	m := &traceBuilder{Trace: Trace{Name: name, Description: about}, random: rand.New(rand.NewPCG(17, 4)), members: make([]nodeSet, pools)} //nolint:gosec // repeatable on purpose
	for p := range pools {
		for n := range nodes {
			m.members[p] = m.members[p].withNode(n)
		}
		m.LoadBalancers = append(m.LoadBalancers, p%balancers)
	}
	m.Initial = slices.Clone(m.members)
	return m
}

func (t *traceBuilder) randomTime(d time.Duration) time.Duration {
	return time.Duration(t.random.Int64N(int64(d))).Truncate(time.Millisecond)
}

func (t *traceBuilder) changeNode(at time.Duration, pool, node int) {
	t.Changes = append(t.Changes, Change{At: at, Pool: pool, Want: nodeSet{}.withNode(node)})
}

// buildTrace sorts the changes and converts toggles to desired members.
func (t *traceBuilder) buildTrace() Trace {
	slices.SortStableFunc(t.Changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	for i, c := range t.Changes {
		for n := range maxNodes {
			switch {
			case !c.Want.hasNode(n):
			case t.members[c.Pool].hasNode(n):
				t.members[c.Pool] = t.members[c.Pool].withoutNode(n)
			default:
				t.members[c.Pool] = t.members[c.Pool].withNode(n)
			}
		}
		t.Changes[i].Want = t.members[c.Pool]
		t.Duration = max(t.Duration, c.At)
	}
	t.Duration += 20 * time.Minute
	return t.Trace
}

// Traces returns the traces of the page.
func Traces() []Trace {
	return []Trace{isolatedChanges(), frequentChanges(), steadyChanges(), drainNodes(), manyServices(), rollingRestart(), deployEverything()}
}

func isolatedChanges() Trace {
	m := newTraceBuilder("isolated changes", "20 pools of 2 load balancers; every 30 s one of them changes, each pool every 10 minutes", 2, 20, 4)
	for i := range 60 {
		m.changeNode(time.Duration(i)*30*time.Second+m.randomTime(5*time.Second), i%20, 4+i/20)
	}
	return m.buildTrace()
}

func frequentChanges() Trace {
	m := newTraceBuilder("a few changes in a minute", "one pool; five changes within a minute, every 10 minutes", 1, 1, 4)
	for hour := range 6 {
		for i := range 5 {
			m.changeNode(time.Duration(hour)*10*time.Minute+time.Duration(i)*12*time.Second+m.randomTime(3*time.Second), 0, 4+i)
		}
	}
	return m.buildTrace()
}

func steadyChanges() Trace { return steadyChangesFor(15 * time.Minute) }

func steadyChangesFor(lasts time.Duration) Trace {
	m := newTraceBuilder("steady churn", "40 pools of 20 load balancers; each changes every 15 s on average, for a quarter of an hour", 20, 40, 8)
	for p := range 40 {
		for at := m.randomTime(15 * time.Second); at < lasts; at += time.Duration(m.random.ExpFloat64() * float64(15*time.Second)).Truncate(time.Millisecond) {
			m.changeNode(at, p, 8+m.random.IntN(8))
		}
	}
	return m.buildTrace()
}

func drainNodes() Trace {
	m := newTraceBuilder("drain of 50 pools", "50 pools of 5 load balancers with 3 to 12 members; a node leaves all of them, two minutes later another one", 5, 50, 3)
	for p := range 50 {
		for n := range m.random.IntN(10) {
			m.members[p], m.Initial[p] = m.members[p].withNode(3+n), m.Initial[p].withNode(3+n)
		}
		m.changeNode(0, p, 0)
		m.changeNode(2*time.Minute, p, 1)
	}
	return m.buildTrace()
}

func manyServices() Trace {
	m := newTraceBuilder("100 Services at once", "100 empty pools of 10 load balancers get their members within half a minute, three times each", 10, 100, 0)
	for p := range 100 {
		m.changeNode(m.randomTime(2*time.Second), p, 0)
		m.changeNode(2*time.Second+m.randomTime(8*time.Second), p, 1)
		m.changeNode(10*time.Second+m.randomTime(20*time.Second), p, 2)
	}
	return m.buildTrace()
}

func rollingRestart() Trace {
	m := newTraceBuilder("rolling restart of 100 nodes", "12 pools of 4 load balancers with 100 members; every 15 s a node leaves all of them, and is back a minute later", 4, 12, 100)
	for n := range 100 {
		at := time.Duration(n) * 15 * time.Second
		for p := range 12 {
			m.changeNode(at+m.randomTime(500*time.Millisecond), p, n)
			m.changeNode(at+time.Minute+m.randomTime(500*time.Millisecond), p, n)
		}
	}
	return m.buildTrace()
}

func deployEverything() Trace {
	m := newTraceBuilder("deploy of everything", "60 pools of 20 load balancers; within a minute each begins to replace its 8 members, one every 15 s", 20, 60, 8)
	for p := range 60 {
		at := m.randomTime(time.Minute)
		for n := range 8 {
			m.changeNode(at, p, 8+n)
			at += 5*time.Second + m.randomTime(2*time.Second)
			m.changeNode(at, p, n)
			at += 8*time.Second + m.randomTime(4*time.Second)
		}
	}
	return m.buildTrace()
}
