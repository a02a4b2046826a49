// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Source returns the rules of Azure at this moment.
type Source func(ctx context.Context) ([]armemu.ForwardingRule, error)

// EmulatorSource reads an emulator of this process.
func EmulatorSource(emu *armemu.Emulator) Source {
	return func(context.Context) ([]armemu.ForwardingRule, error) { return emu.ForwardingRules(), nil }
}

// BalancerOptions configure a Balancer.
type BalancerOptions struct {
	Source Source
	// Refresh is how often new rules and members are looked up; 0 is 50 ms. New flows read the source themselves.
	Refresh time.Duration
	// Reading of probes; empty is ByThreshold.
	Reading Reading
	// TimeScale multiplies the interval of probes; 0 is 1.
	TimeScale float64
	// UDPIdle ends a UDP flow; 0 is four minutes.
	UDPIdle time.Duration
}

// Balancer is the data plane of all load balancers of an emulated Azure.
type Balancer struct {
	opts    BalancerOptions
	network *Network
	ctx     context.Context //nolint:containedctx // ends with the Balancer
	cancel  context.CancelFunc
	running sync.WaitGroup

	refreshing sync.Mutex

	mu       sync.Mutex
	rules    []armemu.ForwardingRule
	probers  map[probeKey]*prober
	fronts   map[frontKey]closer
	err      error // of the last refresh
	newFlows map[netip.AddrPort]map[netip.Addr]int
	// open counts the established TCP flows of members; undecided those for which a member is being chosen.
	open      map[netip.Addr]int
	undecided int
}

type frontKey struct {
	protocol Protocol
	at       netip.AddrPort
}

type closer interface{ close() }

// StartBalancer starts the data plane. Call Close.
func StartBalancer(network *Network, opts BalancerOptions) *Balancer {
	if opts.Refresh == 0 {
		opts.Refresh = 50 * time.Millisecond
	}
	if opts.Reading == "" {
		opts.Reading = ByThreshold
	}
	if opts.TimeScale == 0 {
		opts.TimeScale = 1
	}
	if opts.UDPIdle == 0 {
		opts.UDPIdle = 4 * time.Minute
	}
	b := &Balancer{
		opts: opts, network: network, probers: map[probeKey]*prober{}, fronts: map[frontKey]closer{},
		newFlows: map[netip.AddrPort]map[netip.Addr]int{}, open: map[netip.Addr]int{},
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.running.Go(func() {
		ticker := time.NewTicker(opts.Refresh)
		defer ticker.Stop()
		for {
			b.Refresh()
			select {
			case <-b.ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return b
}

// Close ends all flows.
func (b *Balancer) Close() {
	b.cancel()
	b.running.Wait()
	b.mu.Lock()
	fronts := slices.Collect(maps.Values(b.fronts))
	clear(b.fronts)
	b.mu.Unlock()
	for _, f := range fronts {
		f.close()
	}
}

// Err returns why the last look at Azure failed, or a frontend has no socket.
func (b *Balancer) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// NewFlows returns how many new flows to a frontend's port went to each member so far.
func (b *Balancer) NewFlows(frontend netip.AddrPort) map[netip.Addr]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.newFlows[frontend])
}

// OpenFlows returns how many TCP flows a member has, or may get from a choice that is being made. If the member takes no
// new flows and has no open ones, it gets none before it takes new ones.
func (b *Balancer) OpenFlows(member netip.Addr) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[member] + b.undecided
}

// Takers returns the members that take new flows to a frontend's port now, sorted.
func (b *Balancer) Takers(protocol Protocol, frontend netip.AddrPort) []netip.Addr {
	rule, ok := b.ruleFor(frontKey{protocol, frontend})
	if !ok {
		return nil
	}
	var addresses []netip.Addr
	for i, takes := range rule.TakesNewFlows(func(i int) bool { return b.isUp(rule.Probe, rule.Members[i]) }) {
		if takes {
			addresses = append(addresses, rule.Members[i].IP)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}

// Refresh reads the rules, and starts and stops listeners and probes.
func (b *Balancer) Refresh() {
	b.refreshing.Lock() // what was read first is applied first
	defer b.refreshing.Unlock()
	rules, err := b.opts.Source(b.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err = err; err != nil {
		return
	}
	b.rules = rules
	probes, fronts := map[probeKey]bool{}, map[frontKey]bool{}
	for i := range rules {
		for _, protocol := range protocolsOf(&rules[i]) {
			fronts[frontKey{protocol, netip.AddrPortFrom(rules[i].Frontend, uint16(rules[i].Port))}] = true //nolint:gosec // checked by the emulator
		}
		for _, m := range rules[i].Members {
			if rules[i].Probe != nil && m.IP.IsValid() {
				probes[probeKey{*rules[i].Probe, m.IP}] = true
			}
		}
	}
	for key, p := range b.probers {
		if !probes[key] {
			p.cancel()
			delete(b.probers, key)
		}
	}
	for key := range probes {
		if b.probers[key] == nil && b.ctx.Err() == nil {
			b.probers[key] = b.startProber(key)
		}
	}
	b.listen(fronts)
}

// listen opens a listener for each frontend's port and closes the others with their flows.
func (b *Balancer) listen(fronts map[frontKey]bool) {
	for key, front := range b.fronts {
		if !fronts[key] {
			delete(b.fronts, key)
			b.running.Go(front.close) // its flows may be choosing a member, which needs the lock
		}
	}
	for key := range fronts {
		if b.fronts[key] != nil || b.ctx.Err() != nil {
			continue
		}
		switch front, err := b.openFront(key); {
		case errors.Is(err, errInUse): // the one before is being closed
		case err != nil:
			b.err = err
		default:
			b.fronts[key] = front
		}
	}
}

func (b *Balancer) openFront(key frontKey) (closer, error) {
	at := DestinationOf(key.protocol, key.at)
	if key.protocol == UDP {
		return b.network.relayUDP(at, b.opts.UDPIdle, func(from netip.AddrPort, before Destination) (Destination, bool) {
			return b.route(key, from, before)
		})
	}
	return b.network.listenTCP(at, func(ctx context.Context, conn net.Conn) { b.forwardTCP(ctx, key, conn) })
}

func (b *Balancer) forwardTCP(ctx context.Context, key frontKey, conn net.Conn) {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		reset(conn)
		return
	}
	b.countOpen(func() { b.undecided++ })
	to, ok := b.route(key, from, Destination{})
	b.countOpen(func() { b.undecided--; b.open[to.Host]++ })
	defer b.countOpen(func() { b.open[to.Host]-- })
	if !ok {
		reset(conn)
		return
	}
	machine, err := b.network.dial(ctx, to)
	if err != nil {
		reset(conn)
		return
	}
	relay(ctx, conn, machine)
}

func (b *Balancer) countOpen(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// route chooses the member of a flow. A flow to before remains there while that member takes new flows.
func (b *Balancer) route(key frontKey, from netip.AddrPort, before Destination) (Destination, bool) {
	rule, ok := b.ruleFor(key)
	if !ok {
		return Destination{}, false
	}
	if before.Host.IsValid() {
		takes := rule.TakesNewFlows(func(i int) bool { return b.isUp(rule.Probe, rule.Members[i]) })
		for i, m := range rule.Members {
			if takes[i] && m.IP == before.Host {
				return before, true
			}
		}
	}
	member, ok := chooseMember(&rule, flow{key.protocol, from, key.at}, func(m armemu.ForwardingMember) bool { return b.isUp(rule.Probe, m) })
	if !ok {
		return Destination{}, false
	}
	b.mu.Lock()
	if b.newFlows[key.at] == nil {
		b.newFlows[key.at] = map[netip.Addr]int{}
	}
	b.newFlows[key.at][member.IP]++
	b.mu.Unlock()
	to := Destination{key.protocol, member.IP, netip.AddrPortFrom(member.IP, uint16(rule.BackendPort))} //nolint:gosec // checked by the emulator
	if rule.FloatingIP {
		to.To = netip.AddrPortFrom(key.at.Addr(), to.To.Port())
	}
	return to, true
}

// ruleFor reads the rule of a frontend's port.
func (b *Balancer) ruleFor(key frontKey) (armemu.ForwardingRule, bool) {
	rules, err := b.opts.Source(b.ctx)
	if err != nil {
		b.mu.Lock()
		rules = b.rules
		b.mu.Unlock()
	}
	for i := range rules {
		r := &rules[i]
		if r.Frontend == key.at.Addr() && r.Port == int(key.at.Port()) && slices.Contains(protocolsOf(r), key.protocol) {
			return *r, true
		}
	}
	return armemu.ForwardingRule{}, false
}

func (b *Balancer) isUp(probe *armemu.ForwardingProbe, m armemu.ForwardingMember) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.probers[probeKey{*probe, m.IP}]
	return p != nil && p.isUp.Load()
}

// ProbeState returns whether a member's probe is up; known is false if the member is not probed. An emulator reports it as the
// health of rules, see armemu.Emulator.ReportHealth.
func (b *Balancer) ProbeState(probe armemu.ForwardingProbe, member netip.Addr) (up, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.probers[probeKey{probe, member}]
	return p != nil && p.isUp.Load(), p != nil
}

// protocolsOf returns nothing for HA ports, which the data plane does not forward.
func protocolsOf(r *armemu.ForwardingRule) []Protocol {
	switch {
	case r.Port <= 0 || r.Port > 65535:
	case strings.EqualFold(r.Protocol, "Tcp"):
		return []Protocol{TCP}
	case strings.EqualFold(r.Protocol, "Udp"):
		return []Protocol{UDP}
	}
	return nil
}
