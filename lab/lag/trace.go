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
	Name, About string
	// Balancers maps pools to load balancers.
	Balancers []int
	// First are the initial members of each pool, already in Azure.
	First []members
	// Changes are sorted by time.
	Changes []Change
	// Lasts is long enough to finish the last change.
	Lasts time.Duration
}

// Change is one change of a pool.
type Change struct {
	At   time.Duration
	Pool int
	Want members
}

// members is a set of node numbers.
type members [2]uint64

func (m members) with(n int) members {
	m[n/64] |= 1 << (n % 64)
	return m
}

func (m members) without(n int) members {
	m[n/64] &^= 1 << (n % 64)
	return m
}

func (m members) has(n int) bool { return m[n/64]&(1<<(n%64)) != 0 }

// but counts the members not in the other set.
func (m members) but(other members) int {
	return bits.OnesCount64(m[0]&^other[0]) + bits.OnesCount64(m[1]&^other[1])
}

// and counts the members also in the other set.
func (m members) and(other members) int {
	return bits.OnesCount64(m[0]&other[0]) + bits.OnesCount64(m[1]&other[1])
}

// mostNodes is the maximum number of nodes.
const mostNodes = 128

// maker builds a trace.
type maker struct {
	Trace
	random *rand.Rand
	want   []members
}

// newMaker returns a maker with this number of pools, spread over load balancers, each with the
// first nodes.
func newMaker(name, about string, balancers, pools, nodes int) *maker {
	m := &maker{Trace: Trace{Name: name, About: about}, random: rand.New(rand.NewPCG(17, 4)), want: make([]members, pools)} //nolint:gosec // repeatable on purpose
	for p := range pools {
		for n := range nodes {
			m.want[p] = m.want[p].with(n)
		}
		m.Balancers = append(m.Balancers, p%balancers)
	}
	m.First = slices.Clone(m.want)
	return m
}

// within returns a random time below d.
func (m *maker) within(d time.Duration) time.Duration {
	return time.Duration(m.random.Int64N(int64(d))).Truncate(time.Millisecond)
}

// toggle adds a node to a pool, or removes it.
func (m *maker) toggle(at time.Duration, pool, node int) {
	m.Changes = append(m.Changes, Change{At: at, Pool: pool, Want: members{}.with(node)})
}

// done sorts the changes and converts toggles to desired members.
func (m *maker) done() Trace {
	slices.SortStableFunc(m.Changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	for i, c := range m.Changes {
		for n := range mostNodes {
			switch {
			case !c.Want.has(n):
			case m.want[c.Pool].has(n):
				m.want[c.Pool] = m.want[c.Pool].without(n)
			default:
				m.want[c.Pool] = m.want[c.Pool].with(n)
			}
		}
		m.Changes[i].Want = m.want[c.Pool]
		m.Lasts = max(m.Lasts, c.At)
	}
	m.Lasts += 20 * time.Minute
	return m.Trace
}

// Traces returns the traces of the page.
func Traces() []Trace {
	return []Trace{isolated(), fewInAMinute(), steadyChurn(), drain(), manyServices(), rollingRestart(), deployAll()}
}

func isolated() Trace {
	m := newMaker("isolated changes", "20 pools of 2 load balancers; every 30 s one of them changes, each pool every 10 minutes", 2, 20, 4)
	for i := range 60 {
		m.toggle(time.Duration(i)*30*time.Second+m.within(5*time.Second), i%20, 4+i/20)
	}
	return m.done()
}

func fewInAMinute() Trace {
	m := newMaker("a few changes in a minute", "one pool; five changes within a minute, every 10 minutes", 1, 1, 4)
	for hour := range 6 {
		for i := range 5 {
			m.toggle(time.Duration(hour)*10*time.Minute+time.Duration(i)*12*time.Second+m.within(3*time.Second), 0, 4+i)
		}
	}
	return m.done()
}

func steadyChurn() Trace { return churn(15 * time.Minute) }

func churn(lasts time.Duration) Trace {
	m := newMaker("steady churn", "40 pools of 20 load balancers; each changes every 15 s on average, for a quarter of an hour", 20, 40, 8)
	for p := range 40 {
		for at := m.within(15 * time.Second); at < lasts; at += time.Duration(m.random.ExpFloat64() * float64(15*time.Second)).Truncate(time.Millisecond) {
			m.toggle(at, p, 8+m.random.IntN(8))
		}
	}
	return m.done()
}

func drain() Trace {
	m := newMaker("drain of 50 pools", "50 pools of 5 load balancers with 3 to 12 members; a node leaves all of them, two minutes later another one", 5, 50, 3)
	for p := range 50 {
		for n := range m.random.IntN(10) {
			m.want[p], m.First[p] = m.want[p].with(3+n), m.First[p].with(3+n)
		}
		m.toggle(0, p, 0)
		m.toggle(2*time.Minute, p, 1)
	}
	return m.done()
}

func manyServices() Trace {
	m := newMaker("100 Services at once", "100 empty pools of 10 load balancers get their members within half a minute, three times each", 10, 100, 0)
	for p := range 100 {
		m.toggle(m.within(2*time.Second), p, 0)
		m.toggle(2*time.Second+m.within(8*time.Second), p, 1)
		m.toggle(10*time.Second+m.within(20*time.Second), p, 2)
	}
	return m.done()
}

func rollingRestart() Trace {
	m := newMaker("rolling restart of 100 nodes", "12 pools of 4 load balancers with 100 members; every 15 s a node leaves all of them, and is back a minute later", 4, 12, 100)
	for n := range 100 {
		at := time.Duration(n) * 15 * time.Second
		for p := range 12 {
			m.toggle(at+m.within(500*time.Millisecond), p, n)
			m.toggle(at+time.Minute+m.within(500*time.Millisecond), p, n)
		}
	}
	return m.done()
}

func deployAll() Trace {
	m := newMaker("deploy of everything", "60 pools of 20 load balancers; within a minute each begins to replace its 8 members, one every 15 s", 20, 60, 8)
	for p := range 60 {
		at := m.within(time.Minute)
		for n := range 8 {
			m.toggle(at, p, 8+n)
			at += 5*time.Second + m.within(2*time.Second)
			m.toggle(at, p, n)
			at += 8*time.Second + m.within(4*time.Second)
		}
	}
	return m.done()
}
