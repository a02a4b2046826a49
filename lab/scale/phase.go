// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"time"
)

// Numbers of events.
const (
	touches   = 500
	moves     = 100
	excluding = 10
	// movesApart separates moves, so that they are not batched.
	movesApart = 100 * time.Millisecond
)

// phase is one measured part of a run.
type phase struct {
	name string
	// events divides the cost; 0 does not.
	events int
	// begin starts the phase.
	begin func(context.Context) error
	// lasts is a fixed duration, instead of until all work is done.
	lasts time.Duration
	// after is the earliest start after the controller's.
	after time.Duration
}

// usage is per second, or per metrics read.
type usage struct{ cpu, bytes, objects float64 }

// result is the cost of a phase.
type result struct {
	Phase  string  `json:"phase"`
	Events int     `json:"events,omitempty"`
	Took   float64 `json:"seconds"`
	CPU    float64 `json:"cpuSeconds"`
	// Cluster and Azure are the CPU time of kubelab and the emulator.
	Cluster float64 `json:"apiServerCPUSeconds"`
	Azure   float64 `json:"azureCPUSeconds"`
	Bytes   float64 `json:"allocatedBytes"`
	Allocs  float64 `json:"allocations"`
	// API counts all requests to the API server; Reads and Conflicts are subsets.
	API       float64 `json:"apiRequests"`
	Reads     float64 `json:"apiReads"`
	Conflicts float64 `json:"apiConflicts"`
	ARMReads  float64 `json:"armReads"`
	ARMWrites float64 `json:"armWrites"`
	Resident  float64 `json:"residentBytes"`
	Highest   float64 `json:"highestResidentBytes"`
}

// phases returns the rows of the table. The idle phase comes before the events, whose cost excludes
// the idle cost and the cost of reading metrics.
func (r *run) phases() []phase {
	start := func(ctx context.Context) error { return r.lab.startWeir(ctx) }
	all := []phase{
		{name: "first start", begin: start},
		{name: "restart", begin: func(ctx context.Context) error { r.lab.weir.Stop(); return start(ctx) }},
		{name: "idle", begin: func(context.Context) error { return nil }, lasts: r.opts.Idle, after: r.startLasts()},
		{name: "event, no member", events: touches, begin: func(ctx context.Context) error {
			return r.each(ctx, touches, 0, r.cluster.touch)
		}},
		{name: "event, a member", events: moves, begin: func(ctx context.Context) error {
			return r.each(ctx, moves, movesApart, r.cluster.move)
		}},
		{name: "ten nodes excluded", begin: func(ctx context.Context) error {
			for i := range excluding {
				if err := r.cluster.exclude(ctx, i*(r.opts.Nodes/excluding)+i); err != nil { // nodes of different pools
					return err
				}
			}
			return nil
		}},
	}
	if r.opts.Flood {
		all = append(all, phase{name: "flood", begin: r.flood, lasts: floodLasts + 2*time.Second})
	}
	return all
}

// startLasts is how long the controller works after a start: leftovers of Services are cleaned up
// after a minute. Runs with a shorter idle phase do not wait.
func (r *run) startLasts() time.Duration {
	if r.opts.Idle < time.Minute {
		return 0
	}
	return 75 * time.Second
}

// each applies a function to n Services.
func (r *run) each(ctx context.Context, n int, apart time.Duration, do func(context.Context, int) error) error {
	for i := range n {
		if err := do(ctx, i*7%r.opts.Services); err != nil {
			return err
		}
		if err := pause(ctx, apart); err != nil {
			return err
		}
	}
	return nil
}

// phase runs a phase and stores its cost.
func (r *run) phase(ctx context.Context, p phase) error {
	if err := pause(ctx, time.Until(r.lab.started.Add(p.after))); err != nil {
		return err
	}
	before := sample{cluster: cpuOf(r.lab.kubelab.ID()), azure: cpuOf(r.lab.emulator.ID())}
	if r.lab.weir != nil && p.name != "restart" {
		var err error
		if before, err = r.lab.measure(ctx); err != nil {
			return err
		}
		r.lab.forgetHighest()
	}
	begun := time.Now()
	profile, err := r.profile(ctx, p, before.at.IsZero())
	if err != nil {
		return err
	}
	last, err := r.level(ctx, p, begun)
	if err != nil {
		return err
	}
	if err := profile(ctx); err != nil {
		return err
	}
	r.keep(p, begun, before, last)
	if p.lasts > 0 {
		return r.askOften(ctx)
	}
	return nil
}

// askOften measures the cost of reading the metrics once.
func (r *run) askOften(ctx context.Context) error {
	const times = 20
	before, err := r.lab.measure(ctx)
	last := before
	for i := 0; i < times && err == nil; i++ {
		last, err = r.lab.measure(ctx)
	}
	r.look = usage{(last.cpu - before.cpu).Seconds() / times, (last.bytes - before.bytes) / times, (last.objects - before.objects) / times}
	return err
}

// profile starts the phase, with a profile if requested. The returned function ends the profile.
func (r *run) profile(ctx context.Context, p phase, starts bool) (end func(context.Context) error, err error) {
	if r.opts.Profiles == "" {
		return func(context.Context) error { return nil }, p.begin(ctx)
	}
	if starts { // the profiler starts with the process
		err = p.begin(ctx)
	} else if err = r.lab.startProfile(ctx); err == nil {
		err = p.begin(ctx)
	}
	return func(ctx context.Context) error { return r.lab.endProfile(ctx, r.opts.Profiles, p.name) }, err
}

// End of a phase.
const (
	// looks is the polling interval. A phase ends after rests without work, using less than quiet
	// of a CPU.
	looks = 500 * time.Millisecond
	rests = 2 * time.Second
	quiet = 0.15
)

// level waits until all pools are in sync and no work is left, or for the phase's fixed duration.
// It returns the usage at that time.
func (r *run) level(ctx context.Context, p phase, begun time.Time) (last sample, err error) {
	if p.lasts > 0 { // no polling: a read costs as much as the idle controller
		if err := pause(ctx, p.lasts); err != nil {
			return last, err
		}
		return r.lab.measure(ctx)
	}
	var before sample
	told := time.Now()
	for {
		if err := pause(ctx, looks); err != nil {
			return last, err
		}
		now, err := r.lab.measure(ctx)
		if err != nil {
			return last, err
		}
		busy := now.waiting > 0 || now.level < r.opts.Services || before.at.IsZero() ||
			float64(now.cpu-before.cpu) > quiet*float64(now.at.Sub(before.at))
		if before = now; busy {
			last = now
		}
		switch {
		case now.at.Sub(last.at) >= rests:
			return last, nil
		case time.Since(told) >= 5*time.Second:
			told = time.Now()
			r.say("  %s: %d of %d level, %d operations wait, %.0f s", p.name, now.level, r.opts.Services, now.waiting, time.Since(begun).Seconds())
		}
	}
}

func (r *run) keep(p phase, begun time.Time, before, last sample) {
	took := last.at.Sub(begun).Seconds()
	is := result{
		Phase: p.name, Events: p.events, Took: took, CPU: (last.cpu - before.cpu).Seconds(),
		Cluster: (last.cluster - before.cluster).Seconds(), Azure: (last.azure - before.azure).Seconds(),
		Bytes: last.bytes - before.bytes, Allocs: last.objects - before.objects,
		API: last.api - before.api, Reads: last.reads - before.reads, Conflicts: last.conflicts - before.conflicts,
		ARMReads: last.armReads - before.armReads, ARMWrites: last.armWrites - before.armWrites,
		Resident: last.resident, Highest: r.lab.highest(),
	}
	if p.lasts > 0 {
		r.idles = usage{is.CPU / took, is.Bytes / took, is.Allocs / took}
	} else { // subtract the metrics reads and the idle cost
		n := float64(last.looks - before.looks)
		is.CPU -= r.look.cpu*n + r.idles.cpu*took
		is.Bytes -= r.look.bytes*n + r.idles.bytes*took
		is.Allocs -= r.look.objects*n + r.idles.objects*took
	}
	r.results = append(r.results, is)
	r.say("%s: %s", p.name, fmt.Sprintf("%.1f s, %.2f s of CPU", is.Took, is.CPU))
}
