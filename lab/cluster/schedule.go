// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// Step is one event. A step without its object changes nothing.
type Step struct {
	// After is the delay since the previous step.
	After time.Duration
	// Text describes the step.
	Text  string
	apply func(*Stage) error
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

// scheduleBuilder generates a schedule. Names come from a small set, so that steps interact.
type scheduleBuilder struct {
	*rand.Rand
	steps []Step
	// Steps before and after all others.
	first, last []Step
	// applied after the options
	configChanges []func(*config.Config)
	optionChanges []func(*Options)
	// Features of the schedule. The last one prevents shared addresses: a Service that changes a
	// shared address is rejected.
	twoLoadBalancers, userIPs, unsharedAddresses bool
	// singleFamily excludes dual-stack Services: Azure creates no Private Link Service next to an IPv6
	// frontend.
	singleFamily bool
	// hasSelector: one of several load balancers selects Services.
	hasSelector bool
}

func (b *scheduleBuilder) addConfig(c func(*config.Config)) {
	b.configChanges = append(b.configChanges, c)
}

func (b *scheduleBuilder) addOption(o func(*Options)) { b.optionChanges = append(b.optionChanges, o) }

// NewSchedule returns the schedule of a seed. It is deterministic.
func NewSchedule(seed uint64, steps int) Schedule {
	d := &scheduleBuilder{Rand: rand.New(rand.NewPCG(seed, 2))}        //nolint:gosec // repeatable on purpose
	extra := &scheduleBuilder{Rand: rand.New(rand.NewPCG(seed, 3))}    //nolint:gosec // repeatable on purpose
	machines := &scheduleBuilder{Rand: rand.New(rand.NewPCG(seed, 4))} //nolint:gosec // repeatable on purpose
	ofInterfaces := machines.IntN(5) == 0
	extra.applyFeatures(ofInterfaces)
	if ofInterfaces {
		machines.enableInterfaces()
		if machines.IntN(2) == 0 {
			machines.addPrivateLinks()
			d.singleFamily = true
		}
		extra.optionChanges, extra.configChanges = append(extra.optionChanges, machines.optionChanges...), append(extra.configChanges, machines.configChanges...)
	}
	d.unsharedAddresses = extra.twoLoadBalancers || extra.userIPs
	s := Schedule{Options: d.newOptions(seed), Seed: seed, Interfaces: ofInterfaces, Nodes: 2 + d.IntN(3)}
	extra.applyOptions(&s.Options)
	for n := range 2 + d.IntN(2) { // initial objects
		d.addService(serviceNames[n])
	}
	for len(d.steps) < steps {
		d.addRandomStep()
	}
	merged := machines.mergeSteps(extra.mergeSteps(d.steps))
	d.steps = nil
	d.removeDryRuns()
	s.Steps = slices.Concat(extra.first, merged, extra.last, d.steps)
	return s
}

// applyOptions applies the themes to the options.
func (b *scheduleBuilder) applyOptions(o *Options) {
	for _, world := range b.optionChanges {
		world(o)
	}
	before := o.Configure
	o.Configure = func(c *config.Config) {
		before(c)
		for _, configure := range b.configChanges {
			configure(c)
		}
	}
}

func (b *scheduleBuilder) newOptions(seed uint64) Options {
	o := Options{Seed: seed, Replicas: pickOne(b, 1, 1, 1, 1, 2), Latency: pickOne(b, armemu.Quiet, armemu.Quiet, armemu.Quiet, armemu.Busy), LatencyScale: pickOne(b, 0.2, 1, 1)}
	if b.IntN(2) == 0 {
		o.Behaviour = behavior.RandomBehavior(b.IntN)
		o.Behaviour.PoolIfMatch = behavior.Enforced // otherwise foreign members can be lost
	}
	if b.oneInTen() {
		o.Limits = armemu.AzureLimits()
	}
	interval, drift := pickOne(b, 1, 5, 30), pickOne(b, 120, 600, 3600, 3600)
	strategy := pickOne(b, config.AutoStrategy, config.AutoStrategy, config.SerialStrategy)
	lease, adminState := b.oneInTen(), b.IntN(2) == 0
	o.Configure = func(c *config.Config) {
		c.IntervalSeconds, c.DriftSeconds, c.WriteStrategy = &interval, &drift, strategy
		if lease {
			c.UseResourceLease = new(true)
		}
		c.EnableNodeAdminState = &adminState
	}
	return o
}

func (b *scheduleBuilder) oneInTen() bool { return b.IntN(10) == 0 }

func pickOne[T any](d *scheduleBuilder, of ...T) T { return of[d.IntN(len(of))] }

func (b *scheduleBuilder) addStep(do func(*Stage) error, format string, args ...any) {
	after := pickOne(b, 0, 10*time.Millisecond, 300*time.Millisecond, 2*time.Second, 8*time.Second, 40*time.Second)
	if after > 0 {
		after += time.Duration(b.Int64N(int64(after)))
	}
	b.steps = append(b.steps, Step{after, fmt.Sprintf(format, args...), do})
}

// addRandomStep appends a random step, or a group of related steps.
func (b *scheduleBuilder) addRandomStep() {
	name := pickOne(b, serviceNames...)
	for _, c := range []struct {
		weight int
		draw   func()
	}{
		{10, func() { b.addService(name) }},
		{24, func() { b.editService(name) }},
		{8, func() { b.deleteService(name) }},
		{16, func() { b.changeEndpoints(name) }},
		{10, b.changeNode},
		{6, b.addKill},
		{14, b.addAzureFault},
		{14, b.addAPIFault},
		{5, b.addUserPool},
		{5, b.addPause},
	} {
		if c.weight > 0 && b.IntN(112) < c.weight {
			c.draw()
			return
		}
	}
}

func (b *scheduleBuilder) addPause() {
	length := pickOne(b, 30*time.Second, 2*time.Minute, 11*time.Minute)
	b.addStep(func(s *Stage) error { s.Sleep(length); return nil }, "%s pass", length)
}

func (b *scheduleBuilder) addKill() {
	replica := b.IntN(2)
	b.addStep(func(s *Stage) error { s.KillProcess(replica); return nil }, "replica %d is killed", replica)
}
