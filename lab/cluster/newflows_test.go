// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/lab/armemu"
)

// This file models new flows to Services, one per second and Service, to the address in its status: the load balancer
// forwards by its rule, and its probe requests each member every five seconds. kube-proxy forwards to ready endpoints,
// with Local to those of the node, or to those that terminate and still serve if none is ready.

const (
	probeInterval = 5 // seconds
	podStartup    = 10 * time.Second
)

// podSim is a pod of a Service. It starts when it is created, and serves until the end of its preStop time.
type podSim struct {
	node int
	// startedAt is when its containers are ready.
	startedAt time.Time
	// name is that of the Pod with a readiness gate, which is open from openAt on; both are zero without one.
	name                 string
	openAt               time.Time
	terminatedAt, goneAt time.Time // zero before the eviction
}

// wasReady reports whether the pod has ever been ready.
func (p *podSim) wasReady(now time.Time) bool {
	return !now.Before(p.startedAt) && (p.name == "" || !p.openAt.IsZero() && !now.Before(p.openAt))
}

func (p *podSim) isTerminating(now time.Time) bool {
	return !p.terminatedAt.IsZero() && !now.Before(p.terminatedAt)
}
func (p *podSim) isGone(now time.Time) bool  { return !p.goneAt.IsZero() && !now.Before(p.goneAt) }
func (p *podSim) isReady(now time.Time) bool { return p.wasReady(now) && !p.isTerminating(now) }

// acceptsFlows reports whether connections that kube-proxy forwards to the pod succeed.
func (p *podSim) acceptsFlows(now time.Time, preStop time.Duration) bool {
	return p.wasReady(now) && (!p.isTerminating(now) || now.Before(p.terminatedAt.Add(preStop)))
}

// probeReading is how Azure's page about probes is read.
type probeReading struct {
	downAfter, upAfter int // answers in a row
}

var (
	mildReading   = probeReading{downAfter: 2, upAfter: 1}
	strictReading = probeReading{downAfter: 1, upAfter: 2}
)

// probeState is what a probe knows of a member.
type probeState struct {
	isUp      bool
	good, bad int
}

func (p *probeState) addAnswer(ok bool, r probeReading) {
	if ok {
		p.good, p.bad = p.good+1, 0
	} else {
		p.good, p.bad = 0, p.bad+1
	}
	p.isUp = p.isUp && p.bad < r.downAfter || p.good >= r.upAfter
}

// probeKey identifies a probe of a node: another rule, probe or probe setting starts without answers.
type probeKey struct {
	probe armemu.ForwardingProbe
	node  int
}

// probeReads is what a probe knows of a node by the readings: mild, then strict.
type probeReads [2]probeState

// serviceSim is a Service, its pods and the members that its rule has.
type serviceSim struct {
	key       string
	isCluster bool // its traffic policy
	pods      []*podSim
	// rule is the one at the address of its status.
	rule    armemu.ForwardingRule
	members map[int]bool
}

// healthCheckPath is that of kube-proxy's health check of a Local Service.
const healthCheckPath = "/healthz"

func (s *serviceSim) onNode(node int) (pods []*podSim) {
	for _, p := range s.pods {
		if p.node == node {
			pods = append(pods, p)
		}
	}
	return pods
}

func (s *serviceSim) countReady(now time.Time) (n int) {
	for _, p := range s.pods {
		if p.isReady(now) {
			n++
		}
	}
	return n
}

// flowModel counts what the changes of a cluster cost its clients.
type flowModel struct {
	*Stage
	flowOptions
	services []*serviceSim
	rules    []armemu.ForwardingRule
	revision int // of the rules read last
	probes   map[probeKey]*probeReads
	second   int
	cordoned map[int]bool
	gates    gateSim
	// actions run at a second.
	actions map[int]func()
	total   flowCounts
}

// flowCounts are what the clients lost, by the reading of the probe: mild, then strict.
type flowCounts struct {
	flows, cut, writes int
	lost               [2]float64
}

func (c flowCounts) String() string {
	return fmt.Sprintf("%.1f of %d new flows lost (strict reading %.1f), %d serving members cut, %d writes", c.lost[0], c.flows, c.lost[1], c.cut, c.writes)
}

// flowOptions describe the cluster of a model.
type flowOptions struct {
	nodes, services int
	// pods is the number for each Service; zero is two. edit changes each new Service, which is Local.
	pods int
	edit func(*corev1.Service)
	// preStop is how long a pod that terminates serves. minReady is minReadySeconds of a Deployment.
	preStop, minReady time.Duration
}

// newFlowModel starts a cluster with Local Services.
func newFlowModel(s *Stage, o flowOptions) *flowModel {
	nodes, services := o.nodes, o.services
	m := &flowModel{Stage: s, flowOptions: o, cordoned: map[int]bool{}, actions: map[int]func(){}}
	for n := range nodes {
		failOn(s.AddNode(n))
	}
	s.Start()
	for i := range services {
		v := &serviceSim{key: fmt.Sprintf("shop/s%d", i), members: map[int]bool{}}
		failOn(s.AddService(v.key, func(svc *corev1.Service) {
			setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
			if o.edit != nil {
				o.edit(svc)
			}
			v.isCluster = svc.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal
		}))
		for r := range cmp.Or(o.pods, 2) {
			v.pods = append(v.pods, &podSim{node: (i + r*(1+i%7)) % nodes, startedAt: time.Now()})
		}
		m.services = append(m.services, v)
		m.writeEndpoints(v)
	}
	failOn(s.WaitInSync(30 * time.Minute))
	m.restartServices(m.services, services, m.allNodes(nodes)) // Weir learns whether Azure takes overlapping writes
	m.finish()
	s.emulator.ClearCalls()
	m.total = flowCounts{}
	return m
}

// allNodes returns the numbers of the first nodes.
func (m *flowModel) allNodes(count int) []int {
	nodes := make([]int, count)
	for n := range nodes {
		nodes[n] = n
	}
	return nodes
}

// writeEndpoints writes the EndpointSlice as the endpoints controller does.
func (m *flowModel) writeEndpoints(v *serviceSim) {
	now, at := time.Now(), parseKey(v.key)
	v.pods = slices.DeleteFunc(v.pods, func(p *podSim) bool { return p.isGone(now) })
	slice := &discoveryv1.EndpointSlice{}
	failOn(m.editObject(slice, client.ObjectKey{Namespace: at.Namespace, Name: sliceName(at.Name, discoveryv1.AddressTypeIPv4)}, func() {
		slice.Endpoints = nil
		for i, p := range v.pods {
			serving := p.wasReady(now)
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.244.%d.%d", p.node, i+9)}, NodeName: new(nodeName(p.node)),
				Conditions: discoveryv1.EndpointConditions{Ready: new(p.isReady(now)), Serving: new(serving), Terminating: new(p.isTerminating(now))},
			})
		}
	}))
}

// after runs an action in so many seconds.
func (m *flowModel) after(seconds int, action func()) { m.actions[m.second+seconds] = action }

// passSecond waits for a second, and writes the endpoints that changed in it.
func (m *flowModel) passSecond() {
	if action := m.actions[m.second]; action != nil {
		action()
	}
	before := time.Now()
	m.Sleep(time.Second)
	now := time.Now()
	isDue := func(at time.Time) bool { return at.After(before) && !at.After(now) }
	m.updateGates(now, isDue)
	for _, v := range m.services {
		if slices.ContainsFunc(v.pods, func(p *podSim) bool { return isDue(p.startedAt) || isDue(p.openAt) || isDue(p.goneAt) }) {
			m.writeEndpoints(v)
		}
	}
	m.Sleep(0)
	m.readRules(now)
	for _, v := range m.services {
		m.sendFlow(v, now)
	}
	m.second++
}

// finish waits until the last changes are written, and returns the counts.
func (m *flowModel) finish() flowCounts {
	for range 300 {
		m.passSecond()
	}
	m.total.writes = len(m.emulator.Calls(func(c armemu.Call) bool {
		return c.Method != http.MethodGet && strings.Contains(strings.ToLower(c.Resource), "/loadbalancers/")
	}))
	return m.total
}

// nodeOf returns the number of the node with an address.
func nodeOf(member armemu.ForwardingMember) int { return int(member.IP.As4()[3]) - 4 }

// readRules reads the addresses of the Services, and the rules there from Azure. It probes the members of all rules, and
// counts serving members that left.
func (m *flowModel) readRules(now time.Time) {
	var list corev1.ServiceList
	failOn(m.userClient.List(ctx, &list))
	addresses := map[string]netip.Addr{}
	for i := range list.Items {
		for _, in := range list.Items[i].Status.LoadBalancer.Ingress {
			addresses[metadata.Key(list.Items[i].Namespace, list.Items[i].Name)] = netip.MustParseAddr(in.IP)
		}
	}
	rules, probes := map[netip.Addr]armemu.ForwardingRule{}, map[probeKey]*probeReads{}
	if revision := m.emulator.Revision(); revision != m.revision {
		m.rules, m.revision = m.emulator.ForwardingRules(), revision
	}
	for _, r := range m.rules {
		rules[r.Frontend] = r
		owner, _, _ := strings.Cut(r.Rule[strings.LastIndex(r.Rule, "/")+1:], "-")
		at := slices.IndexFunc(m.services, func(v *serviceSim) bool { return v.key == m.serviceOwners[owner] })
		if at < 0 {
			continue
		}
		for _, member := range r.Members {
			key := probeKey{*r.Probe, nodeOf(member)}
			if probes[key] = m.probes[key]; probes[key] == nil {
				probes[key] = &probeReads{}
			}
			if (m.second+at+key.node*3)%probeInterval == 0 {
				probes[key].addAnswer(r.Probe.Path != healthCheckPath || m.services[at].isReadyOn(key.node, now))
			}
		}
	}
	m.probes = probes
	for _, v := range m.services {
		m.recordRule(v, rules[addresses[v.key]], now)
	}
}

func (p *probeReads) addAnswer(ok bool) {
	p[0].addAnswer(ok, mildReading)
	p[1].addAnswer(ok, strictReading)
}

func (s *serviceSim) isReadyOn(node int, now time.Time) bool {
	return slices.ContainsFunc(s.onNode(node), func(p *podSim) bool { return p.isReady(now) })
}

func (m *flowModel) recordRule(v *serviceSim, rule armemu.ForwardingRule, now time.Time) {
	before := v.members
	v.rule, v.members = rule, map[int]bool{}
	for _, member := range rule.Members {
		v.members[nodeOf(member)] = true
	}
	for node := range before {
		if !v.members[node] && slices.ContainsFunc(v.onNode(node), func(p *podSim) bool { return p.acceptsFlows(now, m.preStop) }) {
			m.total.cut++
		}
	}
}

// sendFlow sends a flow to each member that accepts new ones, as a share.
func (m *flowModel) sendFlow(v *serviceSim, now time.Time) {
	m.total.flows++
	var takers, failing [2]int
	for _, member := range v.rule.Members {
		node := nodeOf(member)
		hasReady := v.isReadyOn(node, now)
		serves := v.isCluster || slices.ContainsFunc(v.onNode(node), func(p *podSim) bool {
			return p.acceptsFlows(now, m.preStop) && (p.isReady(now) || !hasReady)
		})
		reads := m.probes[probeKey{*v.rule.Probe, node}]
		for i := range reads {
			if member.AdminState != "Down" && reads[i].isUp {
				takers[i]++
				if !serves {
					failing[i]++
				}
			}
		}
	}
	for i := range takers {
		if takers[i] == 0 {
			m.total.lost[i]++
		} else {
			m.total.lost[i] += float64(failing[i]) / float64(takers[i])
		}
	}
}

// freeNode returns a node that has no pod of the Service, and takes new ones.
func (m *flowModel) freeNode(v *serviceSim, nodes []int, seed int) int {
	for i := range nodes {
		n := nodes[(seed+i)%len(nodes)]
		if !m.cordoned[n] && len(v.onNode(n)) == 0 {
			return n
		}
	}
	panic("no node is free")
}

// terminate deletes a pod.
func (m *flowModel) terminate(p *podSim) {
	now := time.Now()
	p.terminatedAt, p.goneAt = now, now.Add(max(m.preStop, time.Second))
}

// restart is a rolling restart of a Service with one pod more.
type restart struct {
	of  *serviceSim
	old []*podSim
	// started is the pod that starts.
	started *podSim
}

// advance takes the next step, and reports whether all pods are new and the old ones end.
func (r *restart) advance(m *flowModel, nodes []int, seed int) bool {
	now := time.Now()
	if r.started != nil {
		if !r.started.isReady(now.Add(-m.minReady)) {
			return false
		}
		m.terminate(r.old[0])
		r.old, r.started = r.old[1:], nil
	}
	if len(r.old) > 0 {
		r.started = m.startPod(r.of, m.freeNode(r.of, nodes, seed))
	}
	m.writeEndpoints(r.of)
	return len(r.old) == 0
}

// restartServices restarts the Services, so many at a time.
func (m *flowModel) restartServices(services []*serviceSim, parallel int, nodes []int) {
	var running []*restart
	for next := 0; next < len(services) || len(running) > 0; {
		for len(running) < parallel && next < len(services) {
			running = append(running, &restart{of: services[next], old: slices.Clone(services[next].pods)})
			next++
		}
		running = slices.DeleteFunc(running, func(r *restart) bool { return r.advance(m, nodes, m.second) })
		m.passSecond()
	}
}

// evictPods evicts the pods of a node as disruption budgets allow: one pod of a Service at a time. A new pod starts
// at once.
func (m *flowModel) evictPods(node int, nodes []int) (remaining int) {
	now := time.Now()
	for _, v := range m.services {
		for i, p := range v.pods {
			if p.node != node {
				continue
			}
			remaining++
			if p.isTerminating(now) || v.countReady(now) < 2 {
				continue
			}
			m.terminate(p)
			m.startPod(v, m.freeNode(v, nodes, m.second+i))
			m.writeEndpoints(v)
			break
		}
	}
	return remaining
}

// replaceNodes replaces nodes one by one: the new one is added, the old one drained and deleted.
func (m *flowModel) replaceNodes(count int, announce func(*corev1.Node)) {
	nodes := m.allNodes(count)
	for n := range count {
		failOn(m.AddNode(count + n))
		nodes = append(nodes, count+n)
		m.cordoned[n] = true
		failOn(m.ChangeNode(n, func(node *corev1.Node) {
			node.Spec.Unschedulable = true
			if announce != nil {
				announce(node)
			}
		}))
		m.passSecond()
		for m.evictPods(n, nodes) > 0 {
			m.passSecond()
		}
		failOn(m.DeleteNode(n))
		m.passSecond()
	}
}
