// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir.dev/weir/internal/armemu"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/lb"
)

// wire is the way of a process to Azure. It takes time, it is where a process dies in
// the midst of a call, and it sees every request and answer.
type wire struct {
	process *process
	azure   *armemu.Transport
}

// killPoint is a request at which the process dies: before it leaves, or after Azure
// has answered it and before the answer arrives.
type killPoint struct {
	kind  string // GET, PUT, poll, result, record or report; empty is any
	pool  string // empty is any
	nth   int    // counts down
	after bool
}

var errNoCanary = errors.New("the request does not carry the credential's token")

// distance is how long a request to a load balancer travels, one way. No two are the
// same, so no two lanes' requests arrive in the same instant.
func (s *Stage) distance(id lb.LoadBalancerID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.balances, func(b lb.LoadBalancerID) bool { return b.Key() == id.Key() })
	return 25*time.Millisecond + time.Duration(i)*137_911*time.Nanosecond
}

// Do implements azure.Transport.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	s := w.process.stage
	if req.Header.Get("Authorization") != "Bearer "+canary {
		return nil, errNoCanary
	}
	c, end := w.leave(req)
	if end == nil {
		return nil, context.Canceled
	}
	if err := s.keptAway(req, c); err != nil {
		end()
		return nil, err
	}
	far := s.distance(c.pool.LoadBalancer)
	if err := travel(req.Context(), far); err != nil {
		s.lostOnTheWay(c, "it never arrived")
		return nil, err
	}
	if d := s.lateness(c); d > 0 {
		s.later(func() { w.land(c, req, d) })
		end()
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	resp, err := w.azure.Do(req)
	w.answered(c, resp)
	if end(); req.Context().Err() == nil {
		_ = travel(req.Context(), far)
	}
	if ctxErr := req.Context().Err(); ctxErr != nil {
		if err == nil {
			_ = resp.Body.Close()
			s.lostOnTheWay(c, "the answer is lost")
		}
		return nil, ctxErr
	}
	w.arrived(c, resp)
	return resp, err
}

// land has a write reach Azure long after its sender has given it up.
func (w *wire) land(c call, req *http.Request, d time.Duration) {
	time.Sleep(d)
	resp, err := w.azure.Do(req.WithContext(context.Background()))
	w.answered(c, resp)
	if err == nil {
		_ = resp.Body.Close()
	}
}

// travel waits, or returns the error of a context that ends meanwhile.
func travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hit counts a kill point down, and reports whether this is where the process dies.
func (k *killPoint) hit(c call) bool {
	if k == nil || k.nth <= 0 || k.kind != "" && k.kind != c.kind || k.pool != "" && k.pool != c.pool.Name {
		return false
	}
	k.nth--
	return k.nth == 0
}

// leave notes a request before it is sent. It returns what to do when Azure has
// answered; nil if the process died with the request in hand.
func (w *wire) leave(req *http.Request) (call, func()) {
	p, s := w.process, w.process.stage
	body := readBody(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.callOf(req)
	c.holds = addressesIn(body)
	if p.dead {
		return c, nil
	}
	c.alone = p.alone(c)
	if !p.kill.hit(c) {
		return c, func() {}
	}
	if !p.kill.after {
		p.die(fmt.Sprintf("before %s of %s was sent", c.kind, c.pool.Name))
		return c, nil
	}
	armed := p.kill
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.kill == armed { // or all faults have ended meanwhile
			p.die(fmt.Sprintf("after %s of %s was answered", c.kind, c.pool.Name))
		}
	}
}

// callOf says what a request is for. The caller holds s.mu.
func (s *Stage) callOf(req *http.Request) call {
	c := call{at: time.Now(), kind: req.Method}
	if operation, ok := operationIn(req.URL.Path); ok {
		c.kind = "poll"
		if k := s.pools[s.journal.writes[operation]]; k != nil {
			c.pool = k.id
		}
		return c
	}
	k := s.pools[lb.PoolKey(strings.ToLower(req.URL.Path))]
	if k == nil {
		return c
	}
	c.pool = k.id
	if a := k.attempt; a != nil {
		a.sent++
		switch {
		case a.phase == "put" && c.kind == http.MethodGet:
			c.kind = "result"
		case a.sent > 1:
			c.again = true
		}
		c.gone = a.gone
	}
	c.closed = s.closedFor(k, c)
	return c
}

// gatesOf names the gates that a call to a pool meets. An attempt begins with a read
// and waits for all of them.
func (s *Stage) gatesOf(k *pool, kind string) []string {
	sub := strings.ToLower(k.id.LoadBalancer.SubscriptionID)
	gates := []string{"writes of " + sub, string(k.id.LoadBalancer.Key())}
	if kind == http.MethodGet {
		gates = append(gates, "reads of "+sub)
	}
	return gates
}

// closedFor says why a call must not be made now; empty if it may.
func (s *Stage) closedFor(k *pool, c call) string {
	now := time.Now()
	for _, gate := range s.gatesOf(k, c.kind) {
		if c.kind == http.MethodGet && c.again && strings.HasPrefix(gate, "writes ") {
			continue // an attempt does not begin while writes are closed; one that has begun may read on
		}
		if until := s.gates[gate]; until.After(now) {
			return gate + " are closed until " + s.clock(until)
		}
	}
	if k.parkedUntil.After(now) {
		return "it is parked until " + s.clock(k.parkedUntil)
	}
	return ""
}

// answered notes what Azure made of a request, from its own log.
func (w *wire) answered(c call, resp *http.Response) {
	s := w.process.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.lookOnce()()
	for _, entry := range s.emu.Calls() {
		if entry.Operation != "" && entry.Kind == armemu.KindPut {
			s.journal.writes[entry.Operation] = c.pool.Key()
		}
		c.created = entry.Kind == armemu.KindPut && entry.Status == http.StatusCreated
		k := s.pools[c.pool.Key()]
		k.last = answer{c.kind, entry.Status, entry.Fault != ""}
		if entry.Dropped {
			k.last.status = 0
		}
		if entry.Fault != "" {
			s.rules.fired(entry.Fault)
			k.trouble = later(k.trouble, time.Now())
		}
		s.trace(c.pool.Name, "%s", spellCall(c, entry, resp))
		if missing := s.missingForeign(k); missing != "" {
			s.journal.lost = append(s.journal.lost, fmt.Sprintf("%s has lost %s with %s", c.pool.Name, missing, c.kind))
		}
		s.watch(k)
	}
	s.emu.ClearCalls()
	s.journal.counts[c.kind]++
	if c.kind == http.MethodGet {
		s.journal.reads = append(s.journal.reads, c)
	}
	s.journal.calls = append(s.journal.calls, c)
}

// spellCall is the trace's line of a call.
func spellCall(c call, entry armemu.Call, resp *http.Response) string {
	text := fmt.Sprintf("%-6s", c.kind)
	if entry.Dropped {
		text += " no answer"
	} else {
		text += strings.TrimRight(fmt.Sprintf(" %d %s", entry.Status, entry.ErrorCode), " ")
	}
	if entry.Status == http.StatusPreconditionFailed {
		text += " (If-Match is old)"
	}
	if resp != nil && entry.Status >= 400 {
		if after := resp.Header.Get("Retry-After"); after != "" {
			text += " Retry-After " + after
		}
	}
	if c.kind == http.MethodPut && entry.Status < 300 {
		text += fmt.Sprintf(" holding %d", len(c.holds))
	}
	if c.again {
		text += " (the SDK's retry)"
	}
	return text
}

// quotaCodes and lockCode are the stage's own idea of what closes a gate.
var quotaCodes = []string{"SubscriptionRequestsThrottled", "ResourceRequestsThrottled", "TooManyRequests"}

const lockCode = "RetryableErrorDueToAnotherOperation"

// arrived learns from an answer that reached the process.
func (w *wire) arrived(c call, resp *http.Response) {
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests || c.kind == "poll" || c.kind == "result" {
		return
	}
	until, named := backoff.RetryAfter(resp.Header, time.Now())
	codes := codesIn(resp)
	s := w.process.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if !named {
		return // how long is the client's choice
	}
	if k := s.pools[c.pool.Key()]; k != nil {
		k.asked = until
	}
	sub := strings.ToLower(c.pool.LoadBalancer.SubscriptionID)
	for _, code := range codes {
		switch {
		case code == lockCode:
			s.close(string(c.pool.LoadBalancer.Key()), until)
		case slices.Contains(quotaCodes, code) && c.kind == http.MethodPut:
			s.close("writes of "+sub, until)
		case slices.Contains(quotaCodes, code):
			s.close("reads of "+sub, until)
		}
	}
}

func (s *Stage) close(gate string, until time.Time) { s.gates[gate] = later(s.gates[gate], until) }

func (s *Stage) lostOnTheWay(c call, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace(c.pool.Name, "%-6s %s", c.kind, how)
}
