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
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// stagedARM is a fake Azure that fails one request of a pool update.
type stagedARM struct {
	fakeARM
	row    wireRow
	at     requestKind
	given  int
	landed bool
}

func newStaged(row wireRow, at requestKind) *stagedARM {
	s := &stagedARM{row: row, at: at}
	s.answer = s.next
	return s
}

func (s *stagedARM) next(_ int, r *http.Request) reply {
	op := callOf(r.Context()).op
	if op == s.at.op() && (s.given == 0 || !s.row.resultIn(s.at).once) {
		s.given++
		return s.row.answer
	}
	switch {
	case op == opPut:
		s.landed = !s.row.ends
		if s.at == toSelf {
			return newReply(200, poolBody("Updating", "10.0.0.4"))
		}
		return accepted
	case op == opPoll && s.at != toSelf:
		return done
	case op == opGet && !s.landed:
		return shown
	}
	return newReply(200, strings.Replace(after, `e1`, `e2`, 1)) // a successful write changes the etag
}

// countRequests counts the requests that got the column's response, starting at a call.
func (s *stagedARM) countRequests(from int) int {
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

// makeCall makes the single call of a column, without a worker.
func (s *stagedARM) makeCall(t *testing.T) error {
	client, pool := newClient(t, &s.fakeARM), lb.Pool{}
	if s.at != toGet {
		pool = readPool(t)
		pool.Addresses = wantedAddresses()
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if s.at == toGet {
		_, err := client.GetPool(ctx, webPool)
		return err
	}
	_, err := client.PutPool(ctx, pool)
	return err
}

func wantedAddresses() []lb.Address {
	return []lb.Address{address("n-10.0.0.4", "10.0.0.4"), address("n-10.0.0.5", "10.0.0.5")}
}

// fakeService is a fake of one Service: desired addresses, written status and events.
type fakeService struct {
	mu      sync.Mutex
	written []netip.Addr
	taken   bool
	reports chan updater.Report
	// seen lets the worker continue after a report.
	seen chan struct{}
}

func (*fakeService) IsNeeded(schedule.Operation) bool { return true }

func (s *fakeService) DesiredPool(schedule.Ref) (diff.Desired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return diff.Desired{
		Addresses: wantedAddresses(), IsOwnAddress: func(netip.Addr) bool { return true },
		Record: diff.Record{Written: s.written, Adopted: s.taken},
	}, nil
}

func (s *fakeService) Record(_ context.Context, _ schedule.Ref, in diff.Intent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.taken = in.Written, true
	return nil
}

func (s *fakeService) Report(_ context.Context, r updater.Report) {
	s.reports <- r
	<-s.seen
}

func (*fakeService) ReportWait(updater.Waiting) {}

// interval is the updater's interval.
const interval = 30 * time.Second

// runWorker updates a pool through a worker and calls see after each attempt. It returns the
// number of attempts.
func runWorker(t *testing.T, wire *stagedARM, maxRetries int, see func(attempt int, r updater.Report)) int {
	t.Helper()
	svc := &fakeService{reports: make(chan updater.Report, 10), seen: make(chan struct{})}
	lanes := updater.New(updater.Config{
		Interval: interval, MaxRetries: maxRetries, Azure: newClient(t, &wire.fakeARM),
		Cluster: svc, StatusStore: svc, Reporter: svc, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { lanes.Run(ctx) })
	defer func() { stop(); running.Wait() }()
	lanes.Add(schedule.Operation{Pool: webPool, Service: schedule.ServiceName{Namespace: "shop", Name: "web"}, ChangedAt: time.Now()})
	attempts := 0
	for more := true; more; attempts++ {
		r := <-svc.reports
		see(attempts+1, r)
		if more = r.WillRetry; more {
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

// notification returns the event of an attempt.
func notification(t *testing.T, r updater.Report) string {
	t.Helper()
	word, words := "", 0
	for w, services := range map[string][]schedule.ServiceName{"Updated": r.Updated, "Retrying": r.Retrying, "Failed": r.Failed} {
		if words += len(services); len(services) > 0 {
			word = w
		}
	}
	if words > 1 {
		t.Errorf("the Service was told %d words after one attempt: %+v", words, r)
	}
	return word
}
