// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// stage is the scripted environment of the workers: Azure's responses, the Services of the cluster,
// and a trace of all events.
type stage struct {
	t     *testing.T
	start time.Time
	lanes *Workers
	stop  context.CancelFunc // ends the workers' context
	ended chan struct{}      // closed when Run has returned

	readTakes, writeTakes time.Duration

	mu       sync.Mutex // workers call while the script makes changes
	trace    []string
	breaches []string
	stopped  bool
	// stopAtRecheck stops the workers when they check relevance after an attempt.
	stopAtRecheck bool

	pools    map[lb.PoolKey]*lb.Pool
	answers  map[string][]answer                 // by call and pool, in script order
	services map[schedule.ServiceName]lb.PoolKey // pool of each Service; none if deleted
	wanted   map[lb.PoolKey][]lb.Address
	ledger   map[lb.PoolKey][]netip.Addr
	changes  int
	observed map[bool]int // metric observations, by success
	laws     laws
}

func (s *stage) empty() {
	s.pools, s.answers = map[lb.PoolKey]*lb.Pool{}, map[string][]answer{}
	s.services, s.wanted = map[schedule.ServiceName]lb.PoolKey{}, map[lb.PoolKey][]lb.Address{}
	s.ledger, s.observed = map[lb.PoolKey][]netip.Addr{}, map[bool]int{}
}

// lanesVerb starts the workers; after a stop, new ones like the next process:
//
//	lanes [max-retries=N] [interval=D] [read-takes=D] [write-takes=D]
func lanesVerb(s *stage, c *command) {
	if s.lanes != nil && !s.stopped {
		c.wrong("they run already")
	}
	s.leave()
	cfg := Config{
		Interval: c.duration("interval", interval), MaxRetries: c.number("max-retries", 3),
		Azure: s, Cluster: s, StatusStore: s, Reporter: s, Log: slog.New(slog.DiscardHandler),
	}
	s.readTakes, s.writeTakes = c.duration("read-takes", 0), c.duration("write-takes", 0)
	s.laws, s.stopped, s.stopAtRecheck = newLaws(cfg.MaxRetries), false, false

	lanes, ended := New(cfg), make(chan struct{})
	ctx, stop := context.WithCancel(s.t.Context())
	s.lanes, s.ended, s.stop = lanes, ended, stop
	go func() {
		lanes.Run(ctx)
		close(ended)
	}()
}

// advanceVerb advances virtual time:
//
//	advance D
func advanceVerb(_ *stage, c *command) { time.Sleep(c.parseDuration(c.word())) }

// stopVerb stops the workers like a shutdown, now or at a point that no clock reaches:
//
//	stop [at=recheck]
func stopVerb(s *stage, c *command) {
	if c.only("at", "recheck") {
		s.set(func() { s.stopAtRecheck = true })
		return
	}
	s.set(s.stopNow)
	<-s.ended
}

// stopNow ends the workers' context. The caller holds s.mu.
func (s *stage) stopNow() {
	s.say("the lanes are stopped")
	s.stopped = true
	s.stop()
}

// leave stops the workers if needed, and waits for them.
func (s *stage) leave() {
	if s.lanes != nil {
		s.stop()
		<-s.ended
	}
}

// set changes the stage while workers are running.
func (s *stage) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// say adds a line to the trace, with the time. The caller holds s.mu.
func (s *stage) say(format string, args ...any) {
	s.trace = append(s.trace, s.stamp(time.Now())+" "+fmt.Sprintf(format, args...))
}

// list adds a line without a time.
func (s *stage) list(format string, args ...any) {
	s.set(func() { s.trace = append(s.trace, fmt.Sprintf(format, args...)) })
}

// breach records a violated invariant. The caller holds s.mu.
func (s *stage) breach(format string, args ...any) {
	s.breaches = append(s.breaches, s.stamp(time.Now())+" "+fmt.Sprintf(format, args...))
}

// flush returns the trace and the violations since the last call.
func (s *stage) flush() (out string, breaches []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, breaches = strings.Join(s.trace, "\n"), s.breaches
	s.trace, s.breaches = nil, nil
	return out, breaches
}

// stamp formats a time as seconds since the script began.
func (s *stage) stamp(at time.Time) string {
	return strconv.FormatFloat(at.Sub(s.start).Seconds(), 'f', -1, 64) + "s"
}

// pool parses BALANCER/POOL, such as kubernetes/web.
func (c *command) pool(word string) lb.PoolID {
	c.t.Helper()
	balancer, name := c.pair(word)
	return poolID(balancer, name)
}

// service parses NAMESPACE/NAME.
func (c *command) service(word string) schedule.ServiceName {
	c.t.Helper()
	namespace, name := c.pair(word)
	return schedule.ServiceName{Namespace: namespace, Name: name}
}

func (c *command) pair(word string) (remaining, right string) {
	c.t.Helper()
	remaining, right, ok := strings.Cut(word, "/")
	if !ok {
		c.wrong("%q is no pair of names", word)
	}
	return remaining, right
}

// addresses parses a list such as (n1=10.0.0.1, n2=10.0.0.2).
func (c *command) addresses(name string) []lb.Address {
	list, _ := c.value(name)
	return addresses(strings.ReplaceAll(list, ",", " "))
}

func spellPool(id lb.PoolID) string { return id.LoadBalancer.Name + "/" + id.Name }

func spellService(name schedule.ServiceName) string { return name.Namespace + "/" + name.Name }

func spellMembers(addresses []lb.Address) string {
	if len(addresses) == 0 {
		return "nothing"
	}
	return spell(addresses)
}
