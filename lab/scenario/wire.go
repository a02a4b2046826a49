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

// wire is the way of a process to Azure. It takes time, it is where a process dies in
// the midst of a call, and it sees every request and answer.
type wire struct {
	process *process
	azure   *armemu.Transport
}

// killPoint is a request at which the process dies: before it leaves, or after Azure
// has answered it and before the answer arrives.
type killPoint struct {
	kind  string // GET, PUT, poll, result, record, report or settle; empty is any
	pool  string // empty is any
	nth   int    // counts down
	after bool
	// leader: the process ends in good order.
	leader bool
}

// settling is when an attempt has its answer and the lane asks who has to hear of it.
const settling = "settle"

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
	// Of what was asked of a process that died the next one knows nothing.
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

// hand notes that Azure has a request, or has answered it.
func (p *process) hand(c call, more int) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.waiting[c.pool.LoadBalancer.Key()] += more
	if k := p.stage.pools[c.pool.Key()]; k != nil && time.Since(c.at) > time.Second {
		p.stage.excuse(k.inLane) // whatever came of it
	}
	if c.kind == http.MethodPut {
		p.stage.touch()
	}
}

// landsWithin is how long a late write waits for Azure.
const landsWithin = time.Minute

// land has a write reach Azure long after its sender has given it up.
func (w *wire) land(c call, req *http.Request, d time.Duration) {
	time.Sleep(d)
	ctx, cancel := context.WithTimeout(context.Background(), landsWithin)
	defer cancel()
	w.process.stage.sign(req, nobody+c.id) // what one is refused binds no other
	resp, err := w.azure.Do(req.WithContext(ctx))
	w.process.hand(c, 0)
	w.answered(c, resp)
	w.process.outlived(c)
	if err == nil {
		_ = resp.Body.Close()
	}
}

// outlived notes that a write has landed whose process is dead. The ledger told the next
// process of addresses that it might add; of those that it took away nobody knows.
func (p *process) outlived(c call) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.about(c) {
		// Where the same written once more is no fence it may yet fail.
		unfenced := s.emu.Behaviour().UnchangedWriteEtag == behaviour.Kept
		if unfenced || (p.dead || p.former) && len(k.unwanted) == 0 && s.unlevel(k) != "" {
			k.drifts()
		}
	}
}

// drifts notes that somebody else took or changed addresses of ours.
func (k *pool) drifts() { k.drifted, k.driftedAt = true, time.Now() }

// travel waits, or returns the error of a context that ends meanwhile.
func travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() // also if both came in the same instant
}

// hit counts a kill point down, and reports whether this is where the process dies.
func (k *killPoint) hit(c call) bool {
	if k == nil || k.nth <= 0 || k.kind != c.kind && (k.kind != "" || c.kind == settling) || k.pool != "" && k.pool != c.pool.Name {
		return false
	}
	k.nth--
	return k.nth == 0
}

// strike ends the process where a kill point was hit. The caller holds s.mu.
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

// leave notes a request before it is sent. It returns what to do when Azure has
// answered; nil if the process died with the request in hand.
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
		if p.kill == armed { // or all faults have ended meanwhile
			p.strike(fmt.Sprintf("after %s of %s was answered", c.kind, c.pool.Name))
		}
	}
}

// poolOf returns what a request is about, polls included; a pool that nobody knows if it
// is about none. The caller holds s.mu.
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

// callOf says what a request is for. The caller holds s.mu.
func (s *Stage) callOf(req *http.Request) call {
	s.journal.sent++
	c := call{id: strconv.Itoa(s.journal.sent), at: time.Now(), kind: req.Method}
	req.Header.Set("X-Ms-Client-Request-Id", c.id) // two may be answered in the same instant
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

// closedFor says why a call must not be made now; empty if it may.
func (s *Stage) closedFor(k *pool, c call) string {
	now := time.Now()
	for _, name := range s.gatesOf(k, c.kind) {
		if c.kind == http.MethodGet && (c.again || c.second) && strings.HasPrefix(name, "writes ") {
			continue // an attempt does not begin while writes are closed; one that has begun may read on
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

// answered notes what Azure made of a request, from its own log.
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
			s.excuse((&pool{id: c.pool}).inLane) // those behind it had to wait
		}
		s.trace(c.who(), "%s", spellCall(c, entry, resp))
		for _, k := range s.about(c) {
			if w.process.former { // what it had sent before
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

// heard notes what Azure's answer says of a pool. The caller holds s.mu.
func (s *Stage) heard(k *pool, c call, entry armemu.Call) {
	k.last = answer{
		kind: c.kind, status: entry.Status, forged: entry.Fault != "", at: time.Now(),
		parent: c.kind == http.MethodPut && entry.ErrorCode == fault.CodeParentFailed,
	}
	if entry.Dropped {
		k.last.status = 0
	}
	if a := k.attempt; a != nil && a.orphan && c.kind == http.MethodPut && entry.Status < 300 { // it was sent before they were left to others
		k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool { return s.cluster.has(f.IP) && !slices.Contains(c.holds, f.IP) })
	}
	s.landed(k, c)
}

// landed looks at a pool after an answer. The caller holds s.mu.
func (s *Stage) landed(k *pool, c call) {
	if missing := s.missingForeign(k); missing != "" {
		s.journal.lost = append(s.journal.lost, fmt.Sprintf("%s has lost %s with %s", k.id.Name, missing, c.kind))
	}
	s.watch(k)
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
		if c.down > 0 {
			text += fmt.Sprintf(", %d Down", c.down)
		}
	}
	if c.again {
		text += " (the SDK's retry)"
	}
	return text
}

// arrived learns from an answer that reached the process.
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
		s.closes(lane[0], c, codes, until, false) // somebody mends the load balancer: no answer to a pool, but a gate
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
		case named && follows: // the lane waits with it
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
