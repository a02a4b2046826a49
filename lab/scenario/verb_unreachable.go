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
	// silent: requests get no response; otherwise connections are refused.
	silent bool
	of     lb.LoadBalancerKey // empty: all
	until  time.Time          // zero: until healed
}

// hinders reports whether requests about a pool are blocked now. A nil outage blocks none.
func (o *outage) hinders(k *pool) bool {
	return o != nil && (o.of == "" || o.of == k.id.LoadBalancer.Key()) && (o.until.IsZero() || o.until.After(time.Now()))
}

func doUnreachable(s *Stage, a *reader) (string, error) {
	o := &outage{silent: a.flag("silent")}
	if refused := a.flag("refused"); refused == o.silent {
		a.complain("want refused or silent")
	}
	name, lasts := a.text("lb", ""), a.duration("for", 0)
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" {
		id := s.balancer(name)
		if id == nil {
			return "", fmt.Errorf("there is no load balancer %s", name)
		}
		o.of = id.Key()
	}
	if lasts > 0 {
		o.until = time.Now().Add(lasts)
	}
	s.outage = o
	return "", nil
}

// keptAway returns why a request is blocked, or nil. A silent request blocks until its sender times
// out, even if the outage ends first: the network path has dropped the connection, as a firewall
// does.
func (p *process) keptAway(req *http.Request, c call) error {
	s := p.stage
	s.mu.Lock()
	about, o := s.about(c), s.outage
	if len(about) == 0 || !o.hinders(about[0]) {
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	_ = travel(req.Context(), s.distance(c.pool.LoadBalancer)/1000) // workers that got the lease at the same instant proceed in order
	s.mu.Lock()
	last := answer{}
	if !o.silent {
		last = answer{kind: c.kind, at: time.Now()}
		s.excuse(about[0].inLane)
	}
	for _, k := range about {
		k.last = last
	}
	if !o.silent {
		defer s.mu.Unlock()
		s.trace(c.who(), "%-6s no connection", c.kind)
		return noConnection()
	}
	s.trace(c.who(), "%-6s goes into silence", c.kind)
	s.mu.Unlock()
	p.hand(c, 1)
	begun := time.Now()
	<-req.Context().Done()
	p.hand(c, -1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(begun) <= silence {
		for _, k := range s.pools {
			if k.inLane(about[0]) {
				k.trouble = later(k.trouble, time.Now())
			}
		}
	}
	return context.Cause(req.Context())
}

// silence is the maximum time a worker waits for one response.
const silence = 75 * time.Second

// noConnection is the dial error of a closed port.
func noConnection() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}
