// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
)

func doCluster(s *Stage, a *argReader) (string, error) {
	interval, retries := a.durationArg("interval", s.opts.Interval), a.intArg("retries", s.opts.MaxRetries)
	drift, lease := a.durationArg("drift", s.opts.DriftPeriod), a.durationArg("lease", s.opts.LeaseTerm)
	admin, pipelined := a.flagArg("admin") || s.opts.AdminState, a.flagArg("pipelined") || s.opts.Pipelined
	replicas, share := a.intArg("replicas", s.opts.Replicas), a.intArg("share", s.opts.SharePercent)
	first := s.processCount == 0
	azure := s.parseBehavior(a)
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	if !first && (interval != s.opts.Interval || retries != s.opts.MaxRetries || drift != s.opts.DriftPeriod || admin != s.opts.AdminState || pipelined != s.opts.Pipelined || lease != s.opts.LeaseTerm || replicas != s.opts.Replicas || share != s.opts.SharePercent) {
		return "", fmt.Errorf("interval, retries, drift, admin, pipelined, lease, replicas and share are set before the process starts")
	}
	s.opts.Interval, s.opts.MaxRetries, s.opts.DriftPeriod, s.opts.LeaseTerm, s.opts.AdminState = interval, retries, drift, lease, admin
	s.opts.Pipelined, s.opts.Replicas, s.opts.SharePercent = pipelined, replicas, share
	if err := s.emulator.SetBehavior(azure); err != nil {
		return "", err
	}
	if err := s.buildObjects(a.step.Input); err != nil {
		return "", err
	}
	if !first {
		return "", nil
	}
	return "world " + azure.String() + "\n", s.restartProcess()
}

// parseBehavior returns Azure's behavior: that of the existing cluster, else the assumed one, overridden
// by the arguments.
func (s *Stage) parseBehavior(a *argReader) behavior.Behavior {
	azure := s.emulator.Behavior()
	for i, q := range behavior.AllProperties() {
		next, err := azure.WithResult(q.Name, behavior.Result(a.textArg(q.Name, string(azure.GetResult(i)))))
		if err != nil {
			a.addError("%v", err)
		}
		azure = next
	}
	return azure
}

func (s *Stage) buildObjects(lines string) error {
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
			err = s.buildLoadBalancer(a)
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

func (s *Stage) buildNodes(a *argReader) error {
	var n int
	if _, err := fmt.Sscan(a.wordArg("number"), &n); err != nil {
		a.addError("want a number")
	}
	if err := a.joinErrors(); err != nil {
		return err
	}
	var added []object
	s.mu.Lock()
	for i := range n {
		s.cluster.addNode(fmt.Sprintf("n%d", i+1))
		added = append(added, object{"Node", fmt.Sprintf("n%d", i+1)})
	}
	s.mu.Unlock()
	s.notifyChange(added...)
	return nil
}

func (s *Stage) buildLoadBalancer(a *argReader) error {
	id := lb.LoadBalancerID{SubscriptionID: a.textArg("subscription", "s1"), ResourceGroup: "rg", Name: a.wordArg("name")}
	if err := a.joinErrors(); err != nil {
		return err
	}
	if err := s.emulator.Put(networkID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/16"]}}}`)); err != nil {
		return err
	}
	if err := s.emulator.Put(id.String(), []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"frontend"}]}}`)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.findLoadBalancer(id.Name) == nil {
		s.loadBalancers = append(s.loadBalancers, id)
	}
	return nil
}

// findLoadBalancer returns a load balancer by name. The caller holds s.mu.
func (s *Stage) findLoadBalancer(name string) *lb.LoadBalancerID {
	for _, id := range s.loadBalancers {
		if id.Name == name {
			return &id
		}
	}
	return nil
}

func (s *Stage) buildPool(a *argReader) error {
	balancer, name, _ := strings.Cut(a.wordArg("LB/NAME"), "/")
	var foreign []lb.Address
	for _, text := range a.listArg("foreign") {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			a.addError("foreign=%s: %v", text, err)
		}
		foreign = append(foreign, lb.Address{Name: "f-" + strings.NewReplacer(".", "-", ":", "-").Replace(text), IP: ip})
	}
	nodes, probe := a.listArg("holds"), a.durationArg("probe", 0)
	if probe%time.Second != 0 {
		a.addError("probe=%s: want whole seconds", probe)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := slices.Clone(foreign)
	for _, name := range nodes { // members present before Weir adopts the pool
		if n, ok := s.cluster.nodes[name]; ok {
			held = append(held, lb.Address{Name: name, IP: n.IPs[0]})
		} else {
			a.addError("there is no node %s", name)
		}
	}
	id := s.findLoadBalancer(balancer)
	if id == nil {
		a.addError("there is no load balancer %s", balancer)
	}
	if err := a.joinErrors(); err != nil {
		return err
	}
	k := s.poolNamed(name)
	if k == nil {
		k = &pool{id: lb.PoolID{LoadBalancer: *id, Name: name}}
		s.pools[k.id.Key()] = k
	}
	k.foreign, k.deleted = foreign, false
	if k.isEmpty = false; s.cluster.bindings[name] != nil { // new and empty, without an event
		k.recordDrift()
	}
	if err := s.overwritePool(k, held); err != nil || probe == 0 {
		return err
	}
	return s.addLoadBalancingRule(k, probe)
}

func (s *Stage) buildService(a *argReader) error {
	name, pools, nodes := a.wordArg("name"), a.listArg("pools"), a.listArg("nodes")
	if err := a.joinErrors(); err != nil {
		return err
	}
	s.mu.Lock()
	s.cluster.services[name] = newService(name, nodes)
	for _, at := range pools {
		k := s.poolNamed(at)
		if k == nil {
			s.mu.Unlock()
			return fmt.Errorf("there is no pool %s", at)
		}
		if b := s.cluster.bindings[at]; b == nil || b.service != name {
			s.newBackendPool(name, nil, k)
		}
	}
	s.mu.Unlock()
	s.notifyChange(object{"Service", name})
	return nil
}
