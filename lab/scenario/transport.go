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

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// azureTransport is the transport of a process to Azure. It adds latency, applies kill points and observes
// every request and response.
type azureTransport struct {
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
	// stopGracefully: the process shuts down gracefully.
	stopGracefully bool
}

// resultKind is the kill point after the response, when the updater determines the affected
// operations.
const resultKind = "settle"

var errNoToken = errors.New("the request does not carry the credential's token")

// latencyTo returns the one-way latency to a load balancer. Latencies differ, so requests of two
// workers never arrive at the same instant.
func (s *Stage) latencyTo(id lb.LoadBalancerID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.loadBalancers, func(b lb.LoadBalancerID) bool { return b.Key() == id.Key() })
	return 25*time.Millisecond + time.Duration(i)*137_911*time.Nanosecond
}

func (a *azureTransport) Do(req *http.Request) (*http.Response, error) {
	s := a.process.stage
	if req.Header.Get("Authorization") != "Bearer "+testToken {
		return nil, errNoToken
	}
	a.process.waitRequestRunning(req)
	if err := a.process.checkFence(req); err != nil {
		return nil, err
	}
	c, end := a.recordRequest(req)
	if end == nil {
		return nil, context.Canceled
	}
	if err := a.process.outageError(req, c); err != nil {
		end()
		return nil, err
	}
	far := s.latencyTo(c.pool.LoadBalancer)
	if err := waitLatency(req.Context(), far); err != nil {
		s.isResponseLost(c, "it never arrived")
		return nil, err
	}
	if d, status := s.writeDelay(c); d > 0 {
		s.runLater(func() { a.sendStale(c, req.Clone(context.Background()), d) })
		end()
		a.process.waitRunning(c.pool)
		if status > 0 {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
		}
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	a.process.countInAzure(c, 1)
	// A new process has no knowledge of what a dead one requested.
	s.setToken(req, a.process.name)
	resp, err := a.azure.Do(req)
	a.process.countInAzure(c, -1)
	a.recordResponse(c, resp)
	if end(); req.Context().Err() == nil {
		_ = waitLatency(req.Context(), far)
	}
	a.process.waitRunning(c.pool)
	if ctxErr := req.Context().Err(); ctxErr != nil {
		if err == nil {
			_ = resp.Body.Close()
			s.isResponseLost(c, "the answer is lost")
		}
		return nil, ctxErr
	}
	a.applyArrival(c, resp)
	return resp, err
}

// countInAzure records that Azure received (more = 1) or answered (more = -1) a request.
func (p *process) countInAzure(c call, more int) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.requestsInAzure[c.pool.LoadBalancer.Key()] += more
	if k := p.stage.pools[c.pool.Key()]; k != nil && time.Since(c.at) > time.Second {
		p.stage.resetDeadlines(k.sharesLoadBalancer) // whatever the result
	}
	if c.kind == http.MethodPut {
		p.stage.invalidateSnapshots()
	}
}

// maxLandingDelay is the maximum delay of a late write.
const maxLandingDelay = time.Minute

// sendStale delivers a write to Azure after its sender gave it up.
func (a *azureTransport) sendStale(c call, req *http.Request, d time.Duration) {
	time.Sleep(d)
	ctx, cancel := context.WithTimeout(context.Background(), maxLandingDelay)
	defer cancel()
	a.process.stage.setToken(req, expiredPrefix+c.id) // an error it receives does not bind other processes
	resp, err := a.azure.Do(req.WithContext(ctx))
	a.process.countInAzure(c, 0)
	c.isStale = true
	a.recordResponse(c, resp)
	a.process.recordStaleWrite(c)
	if err == nil {
		_ = resp.Body.Close()
	}
}

// recordStaleWrite records that a write of a dead process landed. The ledger announced the addresses it may
// add; nothing announces those it removes.
func (p *process) recordStaleWrite(c call) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.callPools(c) {
		// If an identical write does not change the etag, this write may still fail.
		unfenced := s.emulator.Behavior().NoChangeEtag == behavior.Unchanged
		if unfenced || (p.killed || p.isOldLeader) && len(k.extraSince) == 0 && s.outOfSyncReason(k) != "" {
			k.recordDrift()
		}
	}
}

// recordDrift records that another writer removed or changed Weir's addresses.
func (p *pool) recordDrift() { p.isDrifted, p.driftedAt = true, time.Now() }

// waitLatency waits for d, or returns the error of a context canceled earlier.
func waitLatency(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() // also if both happen at the same instant
}

// countHit decrements a kill point and reports whether the process dies here.
func (k *killPoint) countHit(c call) bool {
	if k == nil || k.nth <= 0 || k.kind != c.kind && (k.kind != "" || c.kind == resultKind) || k.pool != "" && k.pool != c.pool.Name {
		return false
	}
	k.nth--
	return k.nth == 0
}

// killAtPoint kills the process at a kill point. The caller holds s.mu.
func (p *process) killAtPoint(how string) {
	if !p.killAt.stopGracefully {
		p.killNow(how)
		return
	}
	p.startShutdown(how)
	p.stage.runLater(func() {
		<-p.stopDone
		p.stage.mu.Lock()
		p.killNow("")
		p.stage.mu.Unlock()
	})
}

// recordRequest records a request before it is sent. It returns a function to call with the response, or
// nil if the process died.
func (a *azureTransport) recordRequest(req *http.Request) (call, func()) {
	p, s := a.process, a.process.stage
	body := readBody(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.isOldLeader {
		c, sent := p.oldLeaderCall(req), func() {}
		if p.killed {
			sent = nil
		}
		return c, sent
	}
	c := s.newCall(req)
	c.addresses, c.downCount = poolAddresses(body), countDown(body)
	if c.joint != nil {
		c.addresses, c.downCount = loadBalancerAddresses(body)
	}
	if p.killed {
		return c, nil
	}
	c.sharedReason = p.sharedAccessReason(c)
	p.countWrite(c)
	c.skipReason = s.noAccessReason(c)
	if !p.killAt.countHit(c) {
		return c, func() {}
	}
	if !p.killAt.after {
		p.killAtPoint(fmt.Sprintf("before %s of %s was sent", c.kind, c.pool.Name))
		return c, nil
	}
	armed := p.killAt
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.killAt == armed { // or all faults were cleared
			p.killAtPoint(fmt.Sprintf("after %s of %s was answered", c.kind, c.pool.Name))
		}
	}
}

// requestPool returns the pool of a request or poll, or an unknown pool. The caller holds s.mu.
func (s *Stage) requestPool(req *http.Request) *pool {
	key := lb.PoolKey(strings.ToLower(req.URL.Path))
	if operation, ok := operationID(req.URL.Path); ok {
		key = s.history.writes[operation]
	}
	if k := s.pools[key]; k != nil {
		return k
	}
	return &pool{}
}

// newCall classifies a request. The caller holds s.mu.
func (s *Stage) newCall(req *http.Request) call {
	s.history.sent++
	c := call{id: strconv.Itoa(s.history.sent), at: time.Now(), kind: req.Method}
	req.Header.Set("X-Ms-Client-Request-Id", c.id) // two may be answered at the same instant
	if whole, ok := s.newBatchCall(req, c); ok {
		return whole
	}
	k := s.requestPool(req)
	c.pool = k.id
	if _, ok := operationID(req.URL.Path); ok {
		c.kind = "poll"
		return c
	}
	if a := k.attempt; a != nil {
		a.requests++
		switch {
		case a.phase == "put" && c.kind == http.MethodGet:
			c.kind = "result"
		case a.requests == 1 && a.phase == "get" && a.isConflict:
			c.isSecondRead = true
		case a.requests > 1:
			c.isRetry = true
		}
		c.noDesiredState = a.noDesiredState
	}
	c.closedReason = s.closedReason(k, c)
	return c
}

// closedReason returns why a call is not allowed now, or "".
func (s *Stage) closedReason(k *pool, c call) string {
	now := time.Now()
	for _, name := range s.gateNames(k, c.kind) {
		if c.kind == http.MethodGet && (c.isRetry || c.isSecondRead) && strings.HasPrefix(name, "writes ") {
			continue // closed writes block new attempts; a running attempt may still read
		}
		if g := s.throttleGates[name]; g != nil && g.until.After(now) {
			return name + " are closed until " + s.formatTime(g.until)
		}
	}
	if until := latest(k.parkedUntil, k.rejectedUntil); until.After(now) {
		return "it is parked until " + s.formatTime(until)
	}
	return ""
}

// recordResponse records Azure's response from the emulator's log.
func (a *azureTransport) recordResponse(c call, resp *http.Response) {
	s := a.process.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.emulator.Calls(func(entry armemu.Call) bool { return entry.ClientRequestID == c.id }) {
		if entry.Operation != "" && entry.Kind == armemu.KindPut {
			s.history.writes[entry.Operation] = c.pool.Key()
			if c.joint != nil {
				s.history.batchWrites[entry.Operation] = c.pool.LoadBalancer
			}
		}
		c.created = entry.Kind == armemu.KindPut && entry.Status == http.StatusCreated
		if isIfMatchIgnored(entry, c.created) {
			c.created = false
			for _, k := range s.callPools(c) {
				s.excuseConflict(k)
			}
		}
		if entry.Fault != "" {
			s.rules.countMatch(entry.Fault)
			s.resetDeadlines((&pool{id: c.pool}).sharesLoadBalancer) // operations queued behind it had to wait
		}
		s.addLine(c.targetName(), "%s", formatCall(c, entry, resp))
		for _, k := range s.callPools(c) {
			if a.process.isOldLeader { // sent before it lost leadership
				s.refreshPool(k, c)
			} else {
				s.applyResponse(k, c, entry)
			}
		}
	}
	s.history.counts[c.kind]++
	if c.kind == http.MethodGet {
		s.history.reads = append(s.history.reads, c)
	}
	s.history.calls = append(s.history.calls, c)
}

// applyResponse applies Azure's response to the state of a pool. The caller holds s.mu.
func (s *Stage) applyResponse(k *pool, c call, entry armemu.Call) {
	if !c.isStale {
		k.lastAnswer = newResponse(c, entry)
	}
	if a := k.attempt; a != nil && a.isOrphaned && c.kind == http.MethodPut && entry.Status < 300 { // sent before its addresses became foreign
		k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool { return s.cluster.hasAddress(f.IP) && !slices.Contains(c.addresses, f.IP) })
	}
	s.refreshPool(k, c)
}

func newResponse(c call, entry armemu.Call) response {
	r := response{
		kind: c.kind, status: entry.Status, fromFault: entry.Fault != "", at: time.Now(),
		parentFailed: c.kind == http.MethodPut && entry.ErrorCode == armerror.CodeParentFailed,
	}
	if entry.Dropped {
		r.status = 0
	}
	return r
}

// refreshPool refreshes a pool after a response. The caller holds s.mu.
func (s *Stage) refreshPool(k *pool, c call) {
	if missing := s.missingForeign(k); missing != "" {
		s.history.foreignRemoved = append(s.history.foreignRemoved, fmt.Sprintf("%s has lost %s with %s", k.id.Name, missing, c.kind))
	}
	s.updateTimers(k)
}

// formatCall formats the trace line of a call.
func formatCall(c call, entry armemu.Call, resp *http.Response) string {
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
		text += fmt.Sprintf(" holding %d", len(c.addresses))
		if c.downCount > 0 {
			text += fmt.Sprintf(", %d Down", c.downCount)
		}
	}
	if c.isRetry {
		text += " (the SDK's retry)"
	}
	return text
}

// applyArrival applies a response that reached the process.
func (a *azureTransport) applyArrival(c call, resp *http.Response) {
	if resp == nil || resp.StatusCode < http.StatusBadRequest {
		return
	}
	s := a.process.stage
	until, named := parseRetryAfter(resp.Header, time.Now())
	codes := errorCodes(resp)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.process.isOldLeader {
		return
	}
	about := s.callPools(c)
	if lane := s.poolsOf(c.pool.LoadBalancer); len(about) == 0 && len(lane) > 0 && resp.StatusCode == http.StatusTooManyRequests {
		s.applyThrottle(lane[0], c, codes, until, false) // a load balancer repair: closes a gate, but is no response to a pool
	}
	for _, k := range about {
		if named {
			k.excusedUntil = latest(k.excusedUntil, until)
		}
		follows := c.kind == "poll" || c.kind == "result"
		if resp.StatusCode == http.StatusTooManyRequests {
			s.applyThrottle(k, c, codes, until, !follows)
		}
		switch {
		case named && follows: // the worker waits too
			for _, other := range s.poolsOf(k.id.LoadBalancer) {
				other.faultEnd = latest(other.faultEnd, until)
			}
		case named && (k.attempt == nil || !k.attempt.isOrphaned):
			k.rejectedUntil = latest(k.rejectedUntil, until)
		}
	}
}

func (s *Stage) isResponseLost(c call, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addLine(c.targetName(), "%-6s %s", c.kind, how)
}
