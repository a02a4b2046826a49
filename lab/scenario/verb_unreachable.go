// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"weir.dev/weir/internal/lb"
)

// outage blocks requests to Azure.
type outage struct {
	// isSilent: requests get no response; otherwise connections are refused.
	isSilent bool
	of       lb.LoadBalancerKey // empty: all
	until    time.Time          // zero: until healed
}

// blocksPool reports whether requests about a pool are blocked now. A nil outage blocks none.
func (o *outage) blocksPool(k *pool) bool {
	return o != nil && (o.of == "" || o.of == k.id.LoadBalancer.Key()) && (o.until.IsZero() || o.until.After(time.Now()))
}

func doUnreachable(s *Stage, a *argReader) (string, error) {
	o := &outage{isSilent: a.flagArg("silent")}
	if refused := a.flagArg("refused"); refused == o.isSilent {
		a.addError("want refused or silent")
	}
	name, duration := a.textArg("lb", ""), a.durationArg("for", 0)
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" {
		id := s.findLoadBalancer(name)
		if id == nil {
			return "", fmt.Errorf("there is no load balancer %s", name)
		}
		o.of = id.Key()
	}
	if duration > 0 {
		o.until = time.Now().Add(duration)
	}
	s.outages = o
	return "", nil
}

// outageError returns why a request is blocked, or nil. A silent request blocks until its sender times
// out, even if the outage ends first: the network path has dropped the connection, as a firewall
// does.
func (p *process) outageError(req *http.Request, c call) error {
	s := p.stage
	s.mu.Lock()
	about, o := s.callPools(c), s.outages
	if len(about) == 0 || !o.blocksPool(about[0]) {
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	_ = waitLatency(req.Context(), s.latencyTo(c.pool.LoadBalancer)/1000) // workers that got the lease at the same instant proceed in order
	s.mu.Lock()
	last := response{}
	if !o.isSilent {
		last = response{kind: c.kind, at: time.Now()}
		s.resetDeadlines(about[0].sharesLoadBalancer)
	}
	for _, k := range about {
		k.lastAnswer = last
	}
	if !o.isSilent {
		defer s.mu.Unlock()
		s.addLine(c.targetName(), "%-6s no connection", c.kind)
		return connectionError()
	}
	s.addLine(c.targetName(), "%-6s goes into silence", c.kind)
	s.mu.Unlock()
	p.countInAzure(c, 1)
	begun := time.Now()
	<-req.Context().Done()
	p.countInAzure(c, -1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(begun) <= maxResponseTime {
		for _, k := range s.pools {
			if k.sharesLoadBalancer(about[0]) {
				k.faultEnd = latest(k.faultEnd, time.Now())
			}
		}
	}
	return context.Cause(req.Context())
}

// maxResponseTime is the maximum time a worker waits for one response.
const maxResponseTime = 75 * time.Second

// connectionError is the dial error of a closed port.
func connectionError() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}
