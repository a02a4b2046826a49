// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

// wire is the transport of a process to Azure. It adds latency, applies kill points and observes
// every request and response.
type wire struct {
	process *process
	azure   *armemu.Transport
}

// killPoint is a request at which the process dies: before it is sent, or after Azure answered but
// before the response arrives.
type killPoint struct {
	kind  string // GET, PUT, poll, result, record, report or settle; empty: any
	pool  string // empty: any
	nth   int    // counts down
	after bool
	// leader: the process shuts down gracefully.
	leader bool
}

// settling is the kill point after the response, when the updater determines the affected
// operations.
const settling = "settle"

var errNoCanary = errors.New("the request does not carry the credential's token")

// distance returns the one-way latency to a load balancer. Latencies differ, so requests of two
// workers never arrive at the same instant.
func (s *Stage) distance(id lb.LoadBalancerID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.balances, func(b lb.LoadBalancerID) bool { return b.Key() == id.Key() })
	return 25*time.Millisecond + time.Duration(i)*137_911*time.Nanosecond
}

func (w *wire) Do(req *http.Request) (*http.Response, error) {
	s := w.process.stage
	if req.Header.Get("Authorization") != "Bearer "+canary {
		return nil, errNoCanary
	}
	w.process.awakeFor(req)
	if err := w.process.mayLeave(req); err != nil {
		return nil, err
	}
	c, end := w.leave(req)
	if end == nil {
		return nil, context.Canceled
	}
	if err := w.process.keptAway(req, c); err != nil {
		end()
		return nil, err
	}
	far := s.distance(c.pool.LoadBalancer)
	if err := travel(req.Context(), far); err != nil {
		s.lostOnTheWay(c, "it never arrived")
		return nil, err
	}
	if d, status := s.lateness(c); d > 0 {
		s.later(func() { w.land(c, req.Clone(context.Background()), d) })
		end()
		w.process.awake(c.pool)
		if status > 0 {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	w.process.hand(c, 1)
	// A new process has no knowledge of what a dead one requested.
	s.sign(req, w.process.name)
	resp, err := w.azure.Do(req)
	w.process.hand(c, -1)
	w.answered(c, resp)
	if end(); req.Context().Err() == nil {
		_ = travel(req.Context(), far)
	}
	w.process.awake(c.pool)
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

// hand records that Azure received (more = 1) or answered (more = -1) a request.
func (p *process) hand(c call, more int) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.waiting[c.pool.LoadBalancer.Key()] += more
	if k := p.stage.pools[c.pool.Key()]; k != nil && time.Since(c.at) > time.Second {
		p.stage.excuse(k.inLane) // whatever the result
	}
	if c.kind == http.MethodPut {
		p.stage.touch()
	}
}

// landsWithin is the maximum delay of a late write.
const landsWithin = time.Minute

// land delivers a write to Azure after its sender gave it up.
func (w *wire) land(c call, req *http.Request, d time.Duration) {
	time.Sleep(d)
	ctx, cancel := context.WithTimeout(context.Background(), landsWithin)
	defer cancel()
	w.process.stage.sign(req, nobody+c.id) // an error it receives does not bind other processes
	resp, err := w.azure.Do(req.WithContext(ctx))
	w.process.hand(c, 0)
	w.answered(c, resp)
	w.process.outlived(c)
	if err == nil {
		_ = resp.Body.Close()
	}
}

// outlived records that a write of a dead process landed. The ledger announced the addresses it may
// add; nothing announces those it removes.
func (p *process) outlived(c call) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.about(c) {
		// If an identical write does not change the etag, this write may still fail.
		unfenced := s.emu.Behavior().NoChangeEtag == behaviour.Unchanged
		if unfenced || (p.dead || p.former) && len(k.unwanted) == 0 && s.unlevel(k) != "" {
			k.drifts()
		}
	}
}

// drifts records that another writer removed or changed Weir's addresses.
func (k *pool) drifts() { k.drifted, k.driftedAt = true, time.Now() }

// travel waits for d, or returns the error of a context canceled earlier.
func travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() // also if both happen at the same instant
}

// hit decrements a kill point and reports whether the process dies here.
func (k *killPoint) hit(c call) bool {
	if k == nil || k.nth <= 0 || k.kind != c.kind && (k.kind != "" || c.kind == settling) || k.pool != "" && k.pool != c.pool.Name {
		return false
	}
	k.nth--
	return k.nth == 0
}

// strike kills the process at a kill point. The caller holds s.mu.
func (p *process) strike(how string) {
	if !p.kill.leader {
		p.die(how)
		return
	}
	p.resign(how)
	p.stage.later(func() {
		<-p.ended
		p.stage.mu.Lock()
		p.die("")
		p.stage.mu.Unlock()
	})
}

// leave records a request before it is sent. It returns a function to call with the response, or
// nil if the process died.
func (w *wire) leave(req *http.Request) (call, func()) {
	p, s := w.process, w.process.stage
	body := readBody(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.former {
		c, sent := p.callOfFormer(req), func() {}
		if p.dead {
			sent = nil
		}
		return c, sent
	}
	c := s.callOf(req)
	c.holds, c.down = addressesIn(body), downIn(body)
	if c.joint != nil {
		c.holds, c.down = addressesOf(body)
	}
	if p.dead {
		return c, nil
	}
	c.alone = p.alone(c)
	p.spends(c)
	c.off = s.handsOff(c)
	if !p.kill.hit(c) {
		return c, func() {}
	}
	if !p.kill.after {
		p.strike(fmt.Sprintf("before %s of %s was sent", c.kind, c.pool.Name))
		return c, nil
	}
	armed := p.kill
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.kill == armed { // or all faults were cleared
			p.strike(fmt.Sprintf("after %s of %s was answered", c.kind, c.pool.Name))
		}
	}
}

// poolOf returns the pool of a request or poll, or an unknown pool. The caller holds s.mu.
func (s *Stage) poolOf(req *http.Request) *pool {
	key := lb.PoolKey(strings.ToLower(req.URL.Path))
	if operation, ok := operationIn(req.URL.Path); ok {
		key = s.journal.writes[operation]
	}
	if k := s.pools[key]; k != nil {
		return k
	}
	return &pool{}
}

// callOf classifies a request. The caller holds s.mu.
func (s *Stage) callOf(req *http.Request) call {
	s.journal.sent++
	c := call{id: strconv.Itoa(s.journal.sent), at: time.Now(), kind: req.Method}
	req.Header.Set("X-Ms-Client-Request-Id", c.id) // two may be answered at the same instant
	if whole, ok := s.wholeCall(req, c); ok {
		return whole
	}
	k := s.poolOf(req)
	c.pool = k.id
	if _, ok := operationIn(req.URL.Path); ok {
		c.kind = "poll"
		return c
	}
	if a := k.attempt; a != nil {
		a.sent++
		switch {
		case a.phase == "put" && c.kind == http.MethodGet:
			c.kind = "result"
		case a.sent == 1 && a.phase == "get" && a.overtaken:
			c.second = true
		case a.sent > 1:
			c.again = true
		}
		c.gone = a.gone
	}
	c.closed = s.closedFor(k, c)
	return c
}

// closedFor returns why a call is not allowed now, or "".
func (s *Stage) closedFor(k *pool, c call) string {
	now := time.Now()
	for _, name := range s.gatesOf(k, c.kind) {
		if c.kind == http.MethodGet && (c.again || c.second) && strings.HasPrefix(name, "writes ") {
			continue // closed writes block new attempts; a running attempt may still read
		}
		if g := s.gates[name]; g != nil && g.until.After(now) {
			return name + " are closed until " + s.clock(g.until)
		}
	}
	if until := later(k.parkedUntil, k.patience); until.After(now) {
		return "it is parked until " + s.clock(until)
	}
	return ""
}

// answered records Azure's response from the emulator's log.
func (w *wire) answered(c call, resp *http.Response) {
	s := w.process.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.emu.Calls(func(entry armemu.Call) bool { return entry.ClientRequestID == c.id }) {
		if entry.Operation != "" && entry.Kind == armemu.KindPut {
			s.journal.writes[entry.Operation] = c.pool.Key()
			if c.joint != nil {
				s.journal.wholes[entry.Operation] = c.pool.LoadBalancer
			}
		}
		c.created = entry.Kind == armemu.KindPut && entry.Status == http.StatusCreated
		if overran(entry, c.created) {
			c.created = false
			for _, k := range s.about(c) {
				s.overrun(k)
			}
		}
		if entry.Fault != "" {
			s.rules.fired(entry.Fault)
			s.excuse((&pool{id: c.pool}).inLane) // operations queued behind it had to wait
		}
		s.trace(c.who(), "%s", spellCall(c, entry, resp))
		for _, k := range s.about(c) {
			if w.process.former { // sent before it lost leadership
				s.landed(k, c)
			} else {
				s.heard(k, c, entry)
			}
		}
	}
	s.journal.counts[c.kind]++
	if c.kind == http.MethodGet {
		s.journal.reads = append(s.journal.reads, c)
	}
	s.journal.calls = append(s.journal.calls, c)
}

// heard applies Azure's response to the state of a pool. The caller holds s.mu.
func (s *Stage) heard(k *pool, c call, entry armemu.Call) {
	k.last = answer{
		kind: c.kind, status: entry.Status, forged: entry.Fault != "", at: time.Now(),
		parent: c.kind == http.MethodPut && entry.ErrorCode == fault.CodeParentFailed,
	}
	if entry.Dropped {
		k.last.status = 0
	}
	if a := k.attempt; a != nil && a.orphan && c.kind == http.MethodPut && entry.Status < 300 { // sent before its addresses became foreign
		k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool { return s.cluster.has(f.IP) && !slices.Contains(c.holds, f.IP) })
	}
	s.landed(k, c)
}

// landed refreshes a pool after a response. The caller holds s.mu.
func (s *Stage) landed(k *pool, c call) {
	if missing := s.missingForeign(k); missing != "" {
		s.journal.lost = append(s.journal.lost, fmt.Sprintf("%s has lost %s with %s", k.id.Name, missing, c.kind))
	}
	s.watch(k)
}

// spellCall formats the trace line of a call.
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
		if c.down > 0 {
			text += fmt.Sprintf(", %d Down", c.down)
		}
	}
	if c.again {
		text += " (the SDK's retry)"
	}
	return text
}

// arrived applies a response that reached the process.
func (w *wire) arrived(c call, resp *http.Response) {
	if resp == nil || resp.StatusCode < http.StatusBadRequest {
		return
	}
	s := w.process.stage
	until, named := askedFor(resp.Header, time.Now())
	codes := codesIn(resp)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.process.former {
		return
	}
	about := s.about(c)
	if lane := s.lane(c.pool.LoadBalancer); len(about) == 0 && len(lane) > 0 && resp.StatusCode == http.StatusTooManyRequests {
		s.closes(lane[0], c, codes, until, false) // a load balancer repair: closes a gate, but is no response to a pool
	}
	for _, k := range about {
		if named {
			k.excuse = later(k.excuse, until)
		}
		follows := c.kind == "poll" || c.kind == "result"
		if resp.StatusCode == http.StatusTooManyRequests {
			s.closes(k, c, codes, until, !follows)
		}
		switch {
		case named && follows: // the worker waits too
			for _, other := range s.lane(k.id.LoadBalancer) {
				other.trouble = later(other.trouble, until)
			}
		case named && (k.attempt == nil || !k.attempt.orphan):
			k.patience = later(k.patience, until)
		}
	}
}

func (s *Stage) lostOnTheWay(c call, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace(c.who(), "%-6s %s", c.kind, how)
}
