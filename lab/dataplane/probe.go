// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Reading is how many answers of a probe change its result. Azure's pages contradict each other.
type Reading string

// The readings. Of a member that joins, each wants the good answers first.
const (
	// ByThreshold needs as many bad answers, or good ones, as the probe's threshold.
	ByThreshold Reading = "threshold"
	// Mild needs as many bad answers as the threshold, and one good one.
	Mild Reading = "mild"
	// Strict needs one bad answer, and as many good ones as the threshold.
	Strict Reading = "strict"
)

// thresholds returns the number of bad and of good answers in a row that change a result.
func (r Reading) thresholds(threshold int) (bad, good int) {
	bad, good = max(threshold, 1), max(threshold, 1)
	switch r {
	case Mild:
		good = 1
	case Strict:
		bad = 1
	case ByThreshold:
	}
	return bad, good
}

// probeResult is the result of a member's probe after its answers so far; zero is down.
type probeResult struct {
	up  bool
	run int // answers in a row that contradict up
}

// after returns the result after another answer.
func (p probeResult) after(good bool, reading Reading, threshold int) probeResult {
	if good == p.up {
		return probeResult{up: p.up}
	}
	bad, needed := reading.thresholds(threshold)
	if !good {
		needed = bad
	}
	if p.run+1 >= needed {
		return probeResult{up: good}
	}
	return probeResult{p.up, p.run + 1}
}

// probeKey identifies a probe of one member.
type probeKey struct {
	probe  armemu.ForwardingProbe
	member netip.Addr
}

// prober probes one member until it is stopped.
type prober struct {
	isUp   atomic.Bool
	ctx    context.Context //nolint:containedctx // ends with the prober
	cancel context.CancelFunc
	now    chan chan<- struct{} // requests of a probe out of turn
}

func (b *Balancer) startProber(key probeKey) *prober {
	ctx, cancel := context.WithCancel(b.ctx)
	p := &prober{ctx: ctx, cancel: cancel, now: make(chan chan<- struct{})}
	b.running.Go(func() {
		ticker := time.NewTicker(max(time.Duration(float64(key.probe.Interval)*b.opts.TimeScale), time.Millisecond))
		defer ticker.Stop()
		var result probeResult
		var requested chan<- struct{}
		for {
			good := b.probe(ctx, key)
			if ctx.Err() != nil {
				return
			}
			result = result.after(good, b.opts.Reading, key.probe.Threshold)
			p.isUp.Store(result.up)
			if requested != nil {
				close(requested)
				requested = nil
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case requested = <-p.now:
			}
		}
	})
	return p
}

// ProbeNow probes each member once, out of turn, and returns when all have answered.
func (b *Balancer) ProbeNow() {
	b.Refresh()
	b.mu.Lock()
	probers := slices.Collect(maps.Values(b.probers))
	b.mu.Unlock()
	var pending sync.WaitGroup
	for _, p := range probers {
		pending.Go(func() {
			done := make(chan struct{})
			select {
			case p.now <- done:
			case <-p.ctx.Done():
				return
			}
			select {
			case <-done:
			case <-p.ctx.Done():
			}
		})
	}
	pending.Wait()
}

// probeTimeout is in real time, so that a busy machine fails no probe: what is down here refuses or answers.
const probeTimeout = time.Minute

func (b *Balancer) probe(ctx context.Context, key probeKey) (good bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	at := netip.AddrPortFrom(key.member, uint16(key.probe.Port)) //nolint:gosec // checked by the emulator
	conn, err := b.network.dial(ctx, DestinationOf(TCP, at))
	if err != nil {
		return false
	}
	defer conn.Close()
	if strings.EqualFold(key.probe.Protocol, "Tcp") {
		return true
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+key.probe.Path, nil)
	if err != nil {
		return false
	}
	request.Close = true
	if request.Write(conn) != nil {
		return false
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
