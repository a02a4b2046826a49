// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// staged is a fake Azure that fails one request of a pool update.
type staged struct {
	fakeARM
	row    wireRow
	at     column
	given  int
	landed bool
}

func newStaged(row wireRow, at column) *staged {
	s := &staged{row: row, at: at}
	s.answer = s.next
	return s
}

func (s *staged) next(_ int, r *http.Request) reply {
	op := callOf(r.Context()).op
	if op == s.at.op() && (s.given == 0 || !s.row.in(s.at).once) {
		s.given++
		return s.row.answer
	}
	switch {
	case op == opPut:
		s.landed = !s.row.ends
		if s.at == toSelf {
			return bare(200, poolBody("Updating", "10.0.0.4"))
		}
		return accepted
	case op == opPoll && s.at != toSelf:
		return done
	case op == opGet && !s.landed:
		return shown
	}
	return bare(200, strings.Replace(after, `e1`, `e2`, 1)) // a successful write changes the etag
}

// asked counts the requests that got the column's response, starting at a call.
func (s *staged) asked(from int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, call := range s.calls[from:] {
		if call.op == s.at.op() {
			n++
		}
	}
	return n
}

// call makes the single call of a column, without a worker.
func (s *staged) call(t *testing.T) error {
	client, pool := newClient(t, &s.fakeARM), lb.Pool{}
	if s.at != toGet {
		pool = read(t)
		pool.Addresses = wantedAddresses()
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if s.at == toGet {
		_, err := client.Get(ctx, webPool)
		return err
	}
	_, err := client.Put(ctx, pool)
	return err
}

func wantedAddresses() []lb.Address {
	return []lb.Address{address("n-10.0.0.4", "10.0.0.4"), address("n-10.0.0.5", "10.0.0.5")}
}

// service is a fake of one Service: desired addresses, written status and events.
type service struct {
	mu      sync.Mutex
	written []netip.Addr
	taken   bool
	reports chan poolupdate.Report
	// seen lets the worker continue after a report.
	seen chan struct{}
}

func (*service) Relevant(poolschedule.Operation) bool { return true }

func (s *service) Desired(poolschedule.Ref) (poolwrite.Desired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return poolwrite.Desired{
		Addresses: wantedAddresses(), Ours: func(netip.Addr) bool { return true },
		Recorded: poolwrite.Recorded{Written: s.written, Taken: s.taken},
	}, nil
}

func (s *service) Record(_ context.Context, _ poolschedule.Ref, in poolwrite.Intent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.taken = in.Written, true
	return nil
}

func (s *service) Report(_ context.Context, r poolupdate.Report) {
	s.reports <- r
	<-s.seen
}

func (*service) Wait(poolupdate.Waiting) {}

// interval is the updater's interval.
const interval = 30 * time.Second

// throughLanes updates a pool through a worker and calls see after each attempt. It returns the
// number of attempts.
func throughLanes(t *testing.T, wire *staged, maxRetries int, see func(attempt int, r poolupdate.Report)) int {
	t.Helper()
	svc := &service{reports: make(chan poolupdate.Report, 10), seen: make(chan struct{})}
	lanes := poolupdate.New(poolupdate.Config{
		Interval: interval, MaxRetries: maxRetries, Azure: newClient(t, &wire.fakeARM),
		Cluster: svc, Ledger: svc, Reporter: svc, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { lanes.Run(ctx) })
	defer func() { stop(); running.Wait() }()
	lanes.Add(poolschedule.Operation{Pool: webPool, Service: poolschedule.ServiceName{Namespace: "shop", Name: "web"}, ChangedAt: time.Now()})
	attempts := 0
	for more := true; more; attempts++ {
		r := <-svc.reports
		see(attempts+1, r)
		if more = r.Requeued; more {
			svc.seen <- struct{}{}
		}
	}
	close(svc.seen)
	sent := wire.count("")
	time.Sleep(10 * interval)
	synctest.Wait()
	if n := wire.count("") - sent; n != 0 || len(svc.reports) != 0 {
		t.Errorf("%d requests and %d reports after the last attempt", n, len(svc.reports))
	}
	return attempts
}

// told returns the event of an attempt.
func told(t *testing.T, r poolupdate.Report) string {
	t.Helper()
	word, words := "", 0
	for w, services := range map[string][]poolschedule.ServiceName{"Updated": r.Updated, "Retrying": r.Retrying, "Failed": r.Failed} {
		if words += len(services); len(services) > 0 {
			word = w
		}
	}
	if words > 1 {
		t.Errorf("the Service was told %d words after one attempt: %+v", words, r)
	}
	return word
}
