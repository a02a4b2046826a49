// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// all are the machines, poolNames the pools: two configurations, both families, and one that
// follows endpoints.
var (
	all       = strings.Fields("n1 n2 n3 blue/0 blue/1 blue/2 green/0 green/1")
	poolNames = strings.Fields("a/k8s a/k8s-6 a/web b/k8s")
)

// violations collects the errors that a world reports.
type violations struct {
	mu  sync.Mutex
	all []string
}

func (v *violations) Helper() {}

func (v *violations) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = append(v.all, fmt.Sprintf(format, args...))
}

// player sets the targets of pools as the pool workers do: while a pool is out of sync, when it
// becomes idle, and periodically.
type player struct {
	*world
	wanted map[string]string // members by pool
}

// refused are the errors a request may get.
var refused = []armerror.Failure{
	{Status: 403}, {Status: 409}, {Status: 412}, {Status: 500}, {ResultUnknown: true}, {OperationFailed: true, Codes: []string{"OperationPreempted"}},
	{Status: 404, TargetMissing: true}, {GateClosed: true},
}

// desired returns where machines belong.
func (p *player) desired() nic.Desired {
	pools := make([]nic.Pool, 0, len(poolNames))
	for _, name := range poolNames {
		pools = append(pools, p.target(name, nil).Pool)
	}
	return nic.NewDesired(pools, p.Machines())
}

// belongs returns the managed pools that a machine must be in. An instance without a node keeps the
// pools of its model, unless a target removes them.
func (p *player) belongs(want nic.Desired, name string) string {
	m := machineOf(name)
	if !m.IsUniform() || want.IsNode(m) {
		return wanted(want.MachinePools(m))
	}
	return only(ours(p.shows(name)), func(pool string) bool {
		return slices.Contains(poolsIn(wanted(want.ModelPools(m.ScaleSet, p.modelShown(m.ScaleSet.Name)))), pool) &&
			slices.Contains(strings.Fields(p.wanted[pool]), name)
	})
}

// modelShown returns the interfaces in a scale set's model.
func (p *player) modelShown(name string) []lb.InterfaceConfiguration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sets[name] == nil {
		return nil
	}
	return p.sets[name].Interfaces
}

func poolsIn(output string) []string { return strings.Fields(strings.ReplaceAll(output, "|", " ")) }

// ours returns the pools that are not foreign, in order.
func ours(output string) string {
	v4, v6, _ := strings.Cut(only(output, func(pool string) bool { return pool[0] != 'x' }), "|")
	a, b := strings.Fields(v4), strings.Fields(v6)
	slices.Sort(a)
	slices.Sort(b)
	return strings.TrimSuffix(strings.Join(a, " ")+"|"+strings.Join(b, " "), "|")
}

// hand reports whether Azure shows a pool as wanted, and sets its target if not, or always.
func (p *player) hand(name string, always bool) bool {
	var leaves []string
	inSync, want := true, p.desired()
	for _, m := range all {
		isMember := slices.Contains(poolsIn(p.shows(m)), name)
		inSync = inSync && isMember == slices.Contains(poolsIn(p.belongs(want, m)), name)
		if isMember && !slices.Contains(strings.Fields(p.wanted[name]), m) {
			leaves = append(leaves, m)
		}
	}
	if !inSync || always {
		p.u.SetTarget(p.target(name, leaves))
	}
	return inSync
}

func (p *player) target(name string, leaves []string) nic.Target {
	t := target(name, p.wanted[name], strings.Join(leaves, " "))
	t.AllNodes = name != "a/web"
	return t
}

func wanted(p nic.Pools) string {
	var families []string
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		var names []string
		for _, id := range p[family] {
			names = append(names, id.LoadBalancer.Name+"/"+id.Name)
		}
		slices.Sort(names)
		families = append(families, strings.Join(names, " "))
	}
	return strings.TrimSuffix(strings.Join(families, "|"), "|")
}

// rounds sets targets until all pools are in sync, or n rounds have passed.
func (p *player) rounds(n int) (inSync bool) {
	for range n {
		inSync = true
		for _, name := range poolNames {
			inSync = p.hand(name, false) && inSync
		}
		p.wait(30 * time.Second)
		p.set(func() {
			for name, s := range p.sets {
				if s.UpgradeMode != lb.UpgradeManual && p.changed[name] { // once per model change
					p.changed[name] = false
					p.upgrades(name, "0", "2")
				}
			}
		})
	}
	return inSync
}

// step is one random event.
type step struct {
	what   string
	pool   string
	names  []string
	number int
	lasts  time.Duration
}

func steps(t *rapid.T) []step {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, len(all), func(s string) string { return s })
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			what:   rapid.SampledFrom([]string{"want", "want", "want", "nodes", "refuse", "lose", "foreign", "busy", "failed", "gate", "restart", "drift", "forget", "model"}).Draw(t, "what"),
			pool:   rapid.SampledFrom(poolNames).Draw(t, "pool"),
			names:  some.Draw(t, "names"),
			number: rapid.IntRange(0, 1000).Draw(t, "number"),
			lasts:  time.Duration(rapid.IntRange(0, 8000).Draw(t, "lasts")) * time.Millisecond,
		}
	}), 0, 12).Draw(t, "steps")
}

// do applies a step.
func (p *player) do(s step) {
	p.mu.Lock()
	switch s.what {
	case "want":
		p.wanted[s.pool] = strings.Join(s.names, " ")
	case "nodes":
		p.nodes = nil
		for i, name := range s.names {
			p.nodes = append(p.nodes, nic.Node{Machine: machineOf(name), Configuration: []string{"", "a", "b"}[(i+s.number)%3]})
		}
	case "refuse":
		remaining := s.number%4 + 1
		p.fail = func(string) error {
			if remaining--; remaining < 0 {
				return nil
			}
			return armerror.Classify(refused[(s.number+remaining)%len(refused)], errors.New("refused"))
		}
	case "lose":
		remaining := s.number%2 + 1
		p.lose = func(string) bool { remaining--; return remaining >= 0 }
	case "foreign", "drift", "busy", "failed":
		for _, name := range s.names {
			p.disturbs(s, name)
		}
	case "model":
		set := p.sets[[]string{"blue", "green"}[s.number%2]]
		p.models(set.ID.Name, set.Interfaces)
	case "gate":
		opens := time.Now().Add(s.lasts)
		p.gate = func(lb.ResourceID) (time.Time, string) {
			if time.Now().Before(opens) {
				return opens, "closed"
			}
			return time.Time{}, ""
		}
	}
	p.mu.Unlock()
	switch s.what {
	case "restart":
		p.stop()
		p.run(2, nil)
		for _, name := range poolNames {
			p.hand(name, true)
		}
	case "forget":
		p.u.Forget(poolID(s.pool))
	}
	p.hand(s.pool, s.number%2 == 0)
	p.wait(s.lasts)
}

// disturbs changes a machine as another writer would. The caller holds p.mu.
func (p *player) disturbs(s step, name string) {
	i := p.nics[name]
	if i == nil {
		return
	}
	i.Etag = p.etag()
	switch s.what {
	case "foreign":
		i.InterfaceConfiguration = configuration(fmt.Sprint("x/", s.number, " ", strings.ReplaceAll(saidOf(i.InterfaceConfiguration), "|", "|x/6 ")))
	case "drift":
		i.InterfaceConfiguration = configuration(only(saidOf(i.InterfaceConfiguration), func(pool string) bool { return pool != s.pool }))
	case "busy":
		i.Provisioning = lb.Updating
	case "failed":
		i.Provisioning = lb.Failed
	}
}

// heals ends all faults.
func (p *player) heals() {
	p.set(func() {
		p.fail, p.lose = func(string) error { return nil }, func(string) bool { return false }
		for _, i := range p.nics {
			if i.Provisioning == lb.Updating {
				i.Provisioning = lb.Succeeded
			}
		}
	})
}

// expectDesired compares what Azure shows with the desired state. The model of a scale set without
// instances in any pool is not checked.
func (p *player) expectDesired() {
	want := p.desired()
	for _, name := range all {
		p.expect(name, ours(p.shows(name)), p.belongs(want, name))
	}
	for _, name := range slices.Sorted(maps.Keys(p.sets)) {
		if slices.ContainsFunc(poolNames, func(pool string) bool { return strings.Contains(p.wanted[pool], name+"/") }) {
			p.expect("model "+name, ours(p.shows(name)), wanted(want.ModelPools(setID(name), p.modelShown(name))))
		}
	}
}

// Under random targets, foreign writes, failures, lost responses and restarts: no resource is
// written twice at a time, the concurrency limit holds, foreign pools stay, and in the end all
// machines are in sync and idle.
func TestLawOfMembership(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		explanation := steps(rt)
		bare := rapid.Bool().Draw(rt, "bare")
		modes := rapid.SliceOfN(rapid.SampledFrom([]lb.UpgradeMode{lb.UpgradeManual, lb.UpgradeAutomatic, lb.UpgradeRolling}), 2, 2).Draw(rt, "modes")
		v := &violations{}
		synctest.Test(t, func(t *testing.T) {
			p := &player{world: newWorld(v), wanted: map[string]string{}}
			p.ctx, p.bare = t.Context(), bare
			p.hasSet("blue", modes[0], "x/out")
			p.hasSet("green", modes[1], "x/out")
			for _, name := range all {
				p.has(name, "x/out")
			}
			p.run(2, nil)
			for _, s := range explanation {
				p.do(s)
			}
			p.heals()
			for _, name := range poolNames {
				p.hand(name, true)
			}
			p.rounds(60)
			if !p.rounds(1) {
				v.Errorf("not in sync after half an hour")
			}
			p.expectDesired()
			p.wait(10 * time.Minute)
			p.take(&p.calls)
			p.wait(time.Hour)
			if calls := p.take(&p.calls); len(calls) > 0 {
				v.Errorf("nobody is at rest: %v", calls)
			}
			if p.most > 2 {
				v.Errorf("%d resources were written at a time", p.most)
			}
			p.stop()
		})
		if len(v.all) > 0 {
			rt.Fatalf("%s", strings.Join(v.all, "\n"))
		}
	})
}
