// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"time"
)

const (
	touchEvents   = 500
	moveEvents    = 100
	excludedNodes = 10
	// Moves must not be batched.
	moveInterval = 100 * time.Millisecond
)

type phaseSpec struct {
	name string
	// events divides the cost, unless 0.
	events int
	start  func(context.Context) error
	// fixed duration, instead of until all work is done
	duration time.Duration
	// earliest start after the controller's
	earliest time.Duration
}

// resourceUsage is per second, or per metrics read.
type resourceUsage struct{ cpu, bytes, objects float64 }

type phaseResult struct {
	Phase   string  `json:"phase"`
	Events  int     `json:"events,omitempty"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpuSeconds"`
	// CPU time of kubelab and the emulator
	Cluster float64 `json:"apiServerCPUSeconds"`
	Azure   float64 `json:"azureCPUSeconds"`
	Bytes   float64 `json:"allocatedBytes"`
	Allocs  float64 `json:"allocations"`
	// Reads and Conflicts are part of API.
	API          float64 `json:"apiRequests"`
	Reads        float64 `json:"apiReads"`
	Conflicts    float64 `json:"apiConflicts"`
	ARMReads     float64 `json:"armReads"`
	ARMWrites    float64 `json:"armWrites"`
	Resident     float64 `json:"residentBytes"`
	PeakResident float64 `json:"highestResidentBytes"`
}

// newPhases puts the idle phase first: the cost of events excludes the idle cost and the metrics
// reads.
func (r *run) newPhases() []phaseSpec {
	start := func(ctx context.Context) error { return r.lab.startWeir(ctx) }
	specs := []phaseSpec{
		{name: "first start", start: start},
		{name: "restart", start: func(ctx context.Context) error { r.lab.controller.Stop(); return start(ctx) }},
		{name: "idle", start: func(context.Context) error { return nil }, duration: r.opts.Idle, earliest: r.settleTime()},
		{name: "event, no member", events: touchEvents, start: func(ctx context.Context) error {
			return r.forEachService(ctx, touchEvents, 0, r.cluster.touchService)
		}},
		{name: "event, a member", events: moveEvents, start: func(ctx context.Context) error {
			return r.forEachService(ctx, moveEvents, moveInterval, r.cluster.moveEndpoint)
		}},
		{name: "ten nodes excluded", start: func(ctx context.Context) error {
			for i := range excludedNodes {
				if err := r.cluster.excludeNode(ctx, i*(r.opts.Nodes/excludedNodes)+i); err != nil { // nodes of different pools
					return err
				}
			}
			return nil
		}},
	}
	if r.opts.Flood {
		specs = append(specs, phaseSpec{name: "flood", start: r.startFlood, duration: floodDuration + 2*time.Second})
	}
	return specs
}

// settleTime includes the cleanup of leftovers, a minute after a start.
func (r *run) settleTime() time.Duration {
	if r.opts.Idle < time.Minute {
		return 0
	}
	return 75 * time.Second
}

func (r *run) forEachService(ctx context.Context, n int, apart time.Duration, do func(context.Context, int) error) error {
	for i := range n {
		if err := do(ctx, i*7%r.opts.Services); err != nil {
			return err
		}
		if err := sleepContext(ctx, apart); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) runPhase(ctx context.Context, p phaseSpec) error {
	if err := sleepContext(ctx, time.Until(r.lab.started.Add(p.earliest))); err != nil {
		return err
	}
	before := usageSample{cluster: processCPU(r.lab.kubelab.ProcessID()), azure: processCPU(r.lab.emulator.ProcessID())}
	if r.lab.controller != nil && p.name != "restart" {
		var err error
		if before, err = r.lab.readMetrics(ctx); err != nil {
			return err
		}
		r.lab.resetPeakMemory()
	}
	begin := time.Now()
	profile, err := r.startProfiled(ctx, p, before.at.IsZero())
	if err != nil {
		return err
	}
	last, err := r.waitInSync(ctx, p, begin)
	if err != nil {
		return err
	}
	if err := profile(ctx); err != nil {
		return err
	}
	r.recordResult(p, begin, before, last)
	if p.duration > 0 {
		return r.measureRead(ctx)
	}
	return nil
}

func (r *run) measureRead(ctx context.Context) error {
	const times = 20
	before, err := r.lab.readMetrics(ctx)
	last := before
	for i := 0; i < times && err == nil; i++ {
		last, err = r.lab.readMetrics(ctx)
	}
	r.readUsage = resourceUsage{(last.cpu - before.cpu).Seconds() / times, (last.bytes - before.bytes) / times, (last.objects - before.objects) / times}
	return err
}

func (r *run) startProfiled(ctx context.Context, p phaseSpec, starts bool) (end func(context.Context) error, err error) {
	if r.opts.Profiles == "" {
		return func(context.Context) error { return nil }, p.start(ctx)
	}
	if starts { // the profiler starts with the process
		err = p.start(ctx)
	} else if err = r.lab.startProfile(ctx); err == nil {
		err = p.start(ctx)
	}
	return func(ctx context.Context) error { return r.lab.endProfile(ctx, r.opts.Profiles, p.name) }, err
}

const (
	// A phase ends after rests without work, using less than quiet of a CPU.
	pollInterval = 500 * time.Millisecond
	idleTime     = 2 * time.Second
	idleCPU      = 0.15
)

// waitInSync returns the usage when all pools are in sync and no work is left.
func (r *run) waitInSync(ctx context.Context, p phaseSpec, begin time.Time) (last usageSample, err error) {
	if p.duration > 0 { // no polling: a read costs as much as the idle controller
		if err := sleepContext(ctx, p.duration); err != nil {
			return last, err
		}
		return r.lab.readMetrics(ctx)
	}
	var before usageSample
	lastLog := time.Now()
	for {
		if err := sleepContext(ctx, pollInterval); err != nil {
			return last, err
		}
		now, err := r.lab.readMetrics(ctx)
		if err != nil {
			return last, err
		}
		busy := now.waiting > 0 || now.inSync < r.opts.Services || before.at.IsZero() ||
			float64(now.cpu-before.cpu) > idleCPU*float64(now.at.Sub(before.at))
		if before = now; busy {
			last = now
		}
		switch {
		case now.at.Sub(last.at) >= idleTime:
			return last, nil
		case time.Since(lastLog) >= 5*time.Second:
			lastLog = time.Now()
			r.logf("  %s: %d of %d in sync, %d operations wait, %.0f s", p.name, now.inSync, r.opts.Services, now.waiting, time.Since(begin).Seconds())
		}
	}
}

func (r *run) recordResult(p phaseSpec, begin time.Time, before, last usageSample) {
	took := last.at.Sub(begin).Seconds()
	got := phaseResult{
		Phase: p.name, Events: p.events, Seconds: took, CPU: (last.cpu - before.cpu).Seconds(),
		Cluster: (last.cluster - before.cluster).Seconds(), Azure: (last.azure - before.azure).Seconds(),
		Bytes: last.bytes - before.bytes, Allocs: last.objects - before.objects,
		API: last.api - before.api, Reads: last.reads - before.reads, Conflicts: last.conflicts - before.conflicts,
		ARMReads: last.armReads - before.armReads, ARMWrites: last.armWrites - before.armWrites,
		Resident: last.resident, PeakResident: r.lab.peakMemory(),
	}
	if p.duration > 0 {
		r.idleUsage = resourceUsage{got.CPU / took, got.Bytes / took, got.Allocs / took}
	} else { // subtract the metrics reads and the idle cost
		n := float64(last.metricsReads - before.metricsReads)
		got.CPU -= r.readUsage.cpu*n + r.idleUsage.cpu*took
		got.Bytes -= r.readUsage.bytes*n + r.idleUsage.bytes*took
		got.Allocs -= r.readUsage.objects*n + r.idleUsage.objects*took
	}
	r.results = append(r.results, got)
	r.logf("%s: %s", p.name, fmt.Sprintf("%.1f s, %.2f s of CPU", got.Seconds, got.CPU))
}
