// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/wholewrite"
	"weir.dev/weir/lab/armemu"
)

// Step is one event. A step whose object is missing changes nothing.
type Step struct {
	// After is the delay since the previous step.
	After time.Duration
	// Text describes the step.
	Text string
	do   func(*Stage) error
}

// Schedule is a world and its steps.
type Schedule struct {
	Options
	Seed uint64
	// Interfaces: pools hold network interfaces.
	Interfaces bool
	Nodes      int
	Steps      []Step
}

// draw generates a schedule. Names come from a small set, so that steps interact.
type draw struct {
	*rand.Rand
	steps []Step
	// first and last run before and after all other steps.
	first, last []Step
	// applied after the options
	configures []func(*config.Config)
	worlds     []func(*Options)
	// several and ownAddresses are themes. sole prevents shared addresses: a Service that changes a
	// shared address is rejected.
	several, ownAddresses, sole bool
	// four excludes dual-stack Services: Azure creates no Private Link Service next to an IPv6
	// frontend.
	four bool
	// selective: one of several load balancers selects Services.
	selective bool
}

func (d *draw) configure(c func(*config.Config)) { d.configures = append(d.configures, c) }

func (d *draw) world(o func(*Options)) { d.worlds = append(d.worlds, o) }

// Draw returns the schedule of a seed. It is deterministic.
func Draw(seed uint64, steps int) Schedule {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 2))}        //nolint:gosec // repeatable on purpose
	besides := &draw{Rand: rand.New(rand.NewPCG(seed, 3))}  //nolint:gosec // repeatable on purpose
	machines := &draw{Rand: rand.New(rand.NewPCG(seed, 4))} //nolint:gosec // repeatable on purpose
	ofInterfaces := machines.IntN(5) == 0
	besides.withThemes(ofInterfaces)
	if ofInterfaces {
		machines.interfaces()
		if machines.IntN(2) == 0 {
			machines.published()
			d.four = true
		}
		besides.worlds, besides.configures = append(besides.worlds, machines.worlds...), append(besides.configures, machines.configures...)
	}
	d.sole = besides.several || besides.ownAddresses
	s := Schedule{Options: d.options(seed), Seed: seed, Interfaces: ofInterfaces, Nodes: 2 + d.IntN(3)}
	besides.change(&s.Options)
	for n := range 2 + d.IntN(2) { // initial objects
		d.create(serviceNames[n])
	}
	for len(d.steps) < steps {
		d.one()
	}
	mingled := machines.mingle(besides.mingle(d.steps))
	d.steps = nil
	d.endDryRuns()
	s.Steps = slices.Concat(besides.first, mingled, besides.last, d.steps)
	return s
}

// change applies the themes to the options.
func (d *draw) change(o *Options) {
	for _, world := range d.worlds {
		world(o)
	}
	before := o.Configure
	o.Configure = func(c *config.Config) {
		before(c)
		for _, configure := range d.configures {
			configure(c)
		}
	}
}

func (d *draw) options(seed uint64) Options {
	o := Options{Seed: seed, Replicas: pick(d, 1, 1, 1, 1, 2), Latency: pick(d, armemu.Quiet, armemu.Quiet, armemu.Quiet, armemu.Busy), LatencyScale: pick(d, 0.2, 1, 1)}
	if d.IntN(2) == 0 {
		o.Behaviour = behaviour.RandomBehavior(d.IntN)
		o.Behaviour.PoolIfMatch = behaviour.Enforced // otherwise foreign members can be lost
	}
	if d.one10() {
		o.Limits = armemu.AzureLimits()
	}
	interval, drift := pick(d, 1, 5, 30), pick(d, 120, 600, 3600, 3600)
	whole := pick(d, wholewrite.Auto, wholewrite.Always, wholewrite.Never)
	lease, adminState := d.one10(), d.IntN(2) == 0
	o.Configure = func(c *config.Config) {
		c.IntervalSeconds, c.DriftSeconds, c.EnableWholeWrites = &interval, &drift, whole
		if lease {
			c.UseResourceLease = new(true)
		}
		c.EnableNodeAdminState = &adminState
	}
	return o
}

func (d *draw) one10() bool { return d.IntN(10) == 0 }

func pick[T any](d *draw, of ...T) T { return of[d.IntN(len(of))] }

// add appends a step.
func (d *draw) add(do func(*Stage) error, format string, args ...any) {
	after := pick(d, 0, 10*time.Millisecond, 300*time.Millisecond, 2*time.Second, 8*time.Second, 40*time.Second)
	if after > 0 {
		after += time.Duration(d.Int64N(int64(after)))
	}
	d.steps = append(d.steps, Step{after, fmt.Sprintf(format, args...), do})
}

// one appends a random step, or a group of related steps.
func (d *draw) one() {
	name := pick(d, serviceNames...)
	for _, c := range []struct {
		weight int
		draw   func()
	}{
		{10, func() { d.create(name) }},
		{24, func() { d.edit(name) }},
		{8, func() { d.remove(name) }},
		{16, func() { d.endpoints(name) }},
		{10, d.node},
		{6, d.kill},
		{14, d.azureFault},
		{14, d.apiFault},
		{5, d.poolByHand},
		{5, d.pass},
	} {
		if c.weight > 0 && d.IntN(112) < c.weight {
			c.draw()
			return
		}
	}
}

func (d *draw) pass() {
	length := pick(d, 30*time.Second, 2*time.Minute, 11*time.Minute)
	d.add(func(s *Stage) error { s.Pass(length); return nil }, "%s pass", length)
}

func (d *draw) kill() {
	replica := d.IntN(2)
	d.add(func(s *Stage) error { s.Kill(replica); return nil }, "replica %d is killed", replica)
}
