// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"net/netip"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// journal is what happened since the last step, for the trace and for the checks.
type journal struct {
	lines   []line
	calls   []call
	reports []report
	// lost are foreign addresses that a write took away.
	lost []string
	// overlaps are load balancers with two writes under way.
	overlaps []string
	// hasty are attempts that began before their time, late those that did not, and
	// unfair those that were not next.
	hasty, late, unfair []string
	// left are addresses of ours that a BackendPool has left behind.
	left []string
	// selfish are offences against others who want the lease.
	selfish []string
	// deposed are writes of processes that lead no more.
	deposed []string
	// posthumous are words of a process that was killed.
	posthumous []string
	// sent counts requests.
	sent int
	// writes tells which pool an operation writes.
	writes map[string]lb.PoolKey
	// wholes are those that write a whole load balancer.
	wholes map[string]lb.LoadBalancerID
	logged safeBuffer
	texts  []string // what people were told

	// These are counted until a verb asks.
	counts map[string]int
	reads  []call
	events []event
	// lags are how long changes took until they were seen in force.
	lags []time.Duration
	// success and failure are the observations of the updater's metric.
	success, failure int
}

type line struct {
	at        time.Time
	who, text string
}

// call is one request as it was sent, with what was known at that moment.
type call struct {
	id   string
	at   time.Time
	pool lb.PoolID
	// kind is GET, PUT, poll or result (the GET after the last poll).
	kind string
	// again is true for a repetition by the SDK.
	again bool
	// second is true for a read between the two writes of an attempt.
	second bool
	// closed says what forbids the call; empty if nothing does.
	closed string
	// alone says why the process is not alone with the load balancer, or must not be
	// at work at all; empty if it is and may.
	alone string
	// off says why there is nothing to call Azure for; empty if there is.
	off string
	// gone is true if the cluster had nothing to want for the pool.
	gone  bool
	holds []netip.Addr
	// joint is set for a call about a whole load balancer.
	joint *joint
	// down counts those that are Down.
	down int
	// created is true if Azure had no such pool.
	created bool
}

// report is what the lane said of one attempt, with what the stage knew.
type report struct {
	poolupdate.Report
	// failed and row include this attempt; newest is true if no operation was
	// queued since the attempt began.
	failed, row int
	newest      bool
	// last is the last answer of the attempt.
	last answer
	// passed is a change that was due when the lane began this attempt.
	passed string
	// bound is when the next one may begin at the latest.
	bound time.Time
	// surrender is what the change before was given up for.
	surrender string
	// serviceGone: nobody wants anything there; held: its BackendPool is paused.
	serviceGone, held bool
	// before is each Service's last word on the pool.
	before map[string]string
}

// looks reports whether no change is known to stand behind the attempt: one for drift, or the
// first of a process.
func (r report) looks() bool { return r.Drift || r.ChangedAt.IsZero() }

// event is a word told to a Service.
type event struct {
	service, word string
}

// safeBuffer is a buffer for several writers.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// drain returns and forgets what was written.
func (b *safeBuffer) drain() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.b.String()
	b.b.Reset()
	return text
}
