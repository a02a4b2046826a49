// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
)

func doCluster(s *Stage, a *reader) (string, error) {
	interval, retries := a.duration("interval", s.opts.Interval), a.number("retries", s.opts.MaxRetries)
	drift, lease := a.duration("drift", s.opts.DriftPeriod), a.duration("lease", s.opts.LeaseTerm)
	admin, whole, auto := a.flag("admin") || s.opts.AdminState, a.flag("whole") || s.opts.Whole, a.flag("auto") || s.opts.Auto
	pipelined, findsOut := a.flag("pipelined") || s.opts.Pipelined, a.flag("finds-out") || s.opts.FindsOut
	replicas, share := a.number("replicas", s.opts.Replicas), a.number("share", s.opts.SharePercent)
	first := s.lives == 0
	azure := s.azureOf(a)
	if err := a.err(); err != nil {
		return "", err
	}
	if !first && (interval != s.opts.Interval || retries != s.opts.MaxRetries || drift != s.opts.DriftPeriod || admin != s.opts.AdminState || whole != s.opts.Whole || auto != s.opts.Auto || pipelined != s.opts.Pipelined || findsOut != s.opts.FindsOut || lease != s.opts.LeaseTerm || replicas != s.opts.Replicas || share != s.opts.SharePercent) {
		return "", fmt.Errorf("interval, retries, drift, admin, whole, auto, pipelined, finds-out, lease, replicas and share are set before the process starts")
	}
	s.opts.Interval, s.opts.MaxRetries, s.opts.DriftPeriod, s.opts.LeaseTerm, s.opts.AdminState = interval, retries, drift, lease, admin
	s.opts.Pipelined, s.opts.FindsOut = pipelined, findsOut
	s.opts.Whole, s.opts.Auto, s.opts.Replicas, s.opts.SharePercent = whole, auto, replicas, share
	if err := s.emu.SetBehavior(azure); err != nil {
		return "", err
	}
	if err := s.build(a.step.Input); err != nil {
		return "", err
	}
	if !first {
		return "", nil
	}
	return "world " + azure.String() + "\n", s.restart()
}

// azureOf returns Azure's behavior: that of the existing cluster, else the assumed one, overridden
// by the arguments.
func (s *Stage) azureOf(a *reader) behaviour.Behavior {
	azure := s.emu.Behavior()
	for i, q := range behaviour.AllProperties() {
		next, err := azure.WithResult(q.Name, behaviour.Result(a.text(q.Name, string(azure.GetResult(i)))))
		if err != nil {
			a.complain("%v", err)
		}
		azure = next
	}
	return azure
}

// build creates the objects in the lines.
func (s *Stage) build(lines string) error {
	for text := range strings.Lines(lines) {
		step, err := ParseStep(text)
		if err != nil {
			return err
		}
		a := newReader(step)
		switch step.Verb {
		case "nodes":
			err = s.buildNodes(a)
		case "lb":
			err = s.buildBalancer(a)
		case "pool":
			err = s.buildPool(a)
		case "service":
			err = s.buildService(a)
		default:
			err = fmt.Errorf("want nodes, lb, pool or service")
		}
		if err != nil {
			return fmt.Errorf("%q: %w", strings.TrimSpace(text), err)
		}
	}
	return nil
}

func (s *Stage) buildNodes(a *reader) error {
	var n int
	if _, err := fmt.Sscan(a.word("number"), &n); err != nil {
		a.complain("want a number")
	}
	if err := a.err(); err != nil {
		return err
	}
	var added []object
	s.mu.Lock()
	for i := range n {
		s.cluster.addNode(fmt.Sprintf("n%d", i+1))
		added = append(added, object{"Node", fmt.Sprintf("n%d", i+1)})
	}
	s.mu.Unlock()
	s.changed(added...)
	return nil
}

func (s *Stage) buildBalancer(a *reader) error {
	id := lb.LoadBalancerID{SubscriptionID: a.text("subscription", "s1"), ResourceGroup: "rg", Name: a.word("name")}
	if err := a.err(); err != nil {
		return err
	}
	if err := s.emu.Put(networkID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/16"]}}}`)); err != nil {
		return err
	}
	if err := s.emu.Put(id.String(), []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"frontend"}]}}`)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.balancer(id.Name) == nil {
		s.balances = append(s.balances, id)
	}
	return nil
}

// balancer returns a load balancer by name. The caller holds s.mu.
func (s *Stage) balancer(name string) *lb.LoadBalancerID {
	for _, id := range s.balances {
		if id.Name == name {
			return &id
		}
	}
	return nil
}

func (s *Stage) buildPool(a *reader) error {
	balancer, name, _ := strings.Cut(a.word("LB/NAME"), "/")
	var foreign []lb.Address
	for _, text := range a.list("foreign") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			a.complain("foreign=%s: %v", text, err)
		}
		foreign = append(foreign, lb.Address{Name: "f-" + strings.NewReplacer(".", "-", ":", "-").Replace(text), IP: ip})
	}
	nodes, probe := a.list("holds"), a.duration("probe", 0)
	if probe%time.Second != 0 {
		a.complain("probe=%s: want whole seconds", probe)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := slices.Clone(foreign)
	for _, name := range nodes { // members present before Weir adopts the pool
		if n, ok := s.cluster.nodes[name]; ok {
			held = append(held, lb.Address{Name: name, IP: n.IPs[0]})
		} else {
			a.complain("there is no node %s", name)
		}
	}
	id := s.balancer(balancer)
	if id == nil {
		a.complain("there is no load balancer %s", balancer)
	}
	if err := a.err(); err != nil {
		return err
	}
	k := s.poolNamed(name)
	if k == nil {
		k = &pool{id: lb.PoolID{LoadBalancer: *id, Name: name}}
		s.pools[k.id.Key()] = k
	}
	k.foreign, k.deleted = foreign, false
	if k.emptied = false; s.cluster.bindings[name] != nil { // new and empty, without an event
		k.drifts()
	}
	if err := s.write(k, held); err != nil || probe == 0 {
		return err
	}
	return s.balance(k, probe)
}

func (s *Stage) buildService(a *reader) error {
	name, pools, nodes := a.word("name"), a.list("pools"), a.list("nodes")
	if err := a.err(); err != nil {
		return err
	}
	s.mu.Lock()
	s.cluster.services[name] = placed(name, nodes)
	for _, at := range pools {
		k := s.poolNamed(at)
		if k == nil {
			s.mu.Unlock()
			return fmt.Errorf("there is no pool %s", at)
		}
		if b := s.cluster.bindings[at]; b == nil || b.service != name {
			s.claim(name, nil, k)
		}
	}
	s.mu.Unlock()
	s.changed(object{"Service", name})
	return nil
}
