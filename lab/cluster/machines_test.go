// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/lab/armemu"
)

// machineWrites returns the writes of interfaces, scale sets and instances.
func (s *Stage) machineWrites() (machines []string) {
	writes, _ := s.since()
	for _, w := range writes {
		if strings.Contains(w, "/networkInterfaces/") || strings.Contains(w, "/Microsoft.Compute/") {
			machines = append(machines, w)
		}
	}
	return machines
}

// keepTheirWayOut checks that every machine is in the unmanaged outbound pool.
func (s *Stage) keepTheirWayOut(nodes int) error {
	for n := range nodes {
		id := s.machineID(n)
		if s.setOf(n) == "" {
			id = network + "networkInterfaces/" + nodeName(n)
		}
		if body, ok := s.emu.Get(id); ok && !strings.Contains(string(body), outboundPool) {
			return fmt.Errorf("node %d has lost its way out: %s", n, body)
		}
	}
	return nil
}

// Nodes join and leave despite failing machine writes, and their interfaces keep other pools.
func TestWhatWritesOfMachinesMeet(t *testing.T) {
	const (
		nics, sets, instances = "networkInterfaces/*", "virtualMachineScaleSets/*", "virtualMachineScaleSets/*/virtualMachines/*"
		times                 = 3
	)
	for name, rules := range map[string][]string{
		"somebody else was faster": {met(nics, "put", times, "{bumpEtag: true}"), met(sets, "patch", times, "{bumpEtag: true}"), met(instances, "put", times, "{bumpEtag: true}")},
		"Compute has had enough": {
			met(sets, "patch", 1, "{status: 429, code: OperationNotAllowed, message: busy, headers: {Retry-After: '120'}}"),
			met(instances, "put", 1, "{status: 429, code: OperationNotAllowed, message: busy, headers: {Retry-After: '60'}}"),
		},
		"another request is under way": {met(sets, "patch", times, "{status: 409, code: Conflict, message: another request}"), met(instances, "put", times, "{status: 409, code: Conflict, message: another request}")},
		"answers get lost":             {met(nics, "put", times, "{drop: true, applied: true}"), met(sets, "patch", times, "{drop: true, applied: true}"), met(instances, "put", times, "{drop: true}")},
		"operations fail":              {met(nics, "put", times, "{operation: {fail: {code: InternalServerError, message: broken}}}"), met(instances, "put", times, "{operation: {fail: {code: InternalServerError, message: broken}}}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage(t, Options{Configure: ofInterfaces}, func(s *Stage) {
				for n := range 4 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AzureFaults(rules...))
				must(s.AddService("shop/web", nil))
				must(s.Settles(30 * time.Minute))
				for n := 4; n < 8; n++ {
					must(s.AddNode(n))
				}
				for n := range 3 {
					must(s.ChangeNode(n, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }))
				}
				must(s.Settles(30 * time.Minute))
				must(s.keepTheirWayOut(8))
				if n := s.fired(); n != len(rules) {
					t.Errorf("%d of %d rules have met a request", n, len(rules))
				}
			})
		})
	}
}

func met(path, kind string, times int, action string) string {
	return fmt.Sprintf("{name: %q, match: {path: %q, kind: %s, maxMatches: %d}, action: %s}", kind+" "+path, path, kind, times, action)
}

// fired returns how many fault rules matched a request.
func (s *Stage) fired() int {
	names := map[string]bool{}
	for _, c := range s.emu.Calls(func(c armemu.Call) bool { return c.Fault != "" }) {
		names[c.Fault] = true
	}
	return len(names)
}

// Machines are deleted while they join, or stopped and started: each is awaited, and others join
// meanwhile.
func TestMachinesThatComeAndGo(t *testing.T) {
	stage(t, Options{Configure: ofInterfaces}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(10 * time.Minute))
		for n := 3; n < 9; n++ {
			must(s.AddNode(n))
		}
		must(s.deleteMachine(4))
		must(s.DeleteNode(4))
		must(s.deleteMachine(5))        // its node is deleted later
		for _, n := range []int{6, 7} { // a virtual machine, and an instance
			must(s.ofMachine(http.MethodPost, s.machineID(n)+"/deallocate"))
		}
		s.Pass(2 * time.Minute)
		for _, n := range []int{6, 7} {
			must(s.ofMachine(http.MethodPost, s.machineID(n)+"/start"))
		}
		must(s.DeleteNode(5))
		must(s.Settles(20 * time.Minute))
		must(s.keepTheirWayOut(9))
	})
}

// Both pool types coexist: a Service's pool of interfaces, and a pool of addresses on an unmanaged
// load balancer. Azure temporarily reports the latter as a pool of interfaces: it is read again.
func TestPoolsOfBothKinds(t *testing.T) {
	stage(t, Options{Configure: ofInterfaces}, func(s *Stage) {
		must(s.makeEdge())
		must(s.ChangeNamespace("shop", func(ns *corev1.Namespace) { ns.Annotations = map[string]string{grants: edge} }))
		for n := range 4 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.bind("shop/addresses", edgePools[0], ""))
		must(s.Settles(10 * time.Minute))
		must(s.AzureFaults("{name: kind, match: {path: 'loadBalancers/edge/backendAddressPools/*', kind: put, maxMatches: 2}, action: {status: 400, code: ModificationOfNICIpConfigBackendPoolNotSupported, message: an interface}}"))
		for n := 4; n < 7; n++ {
			must(s.AddNode(n))
		}
		must(s.DeleteNode(0))
		must(s.Settles(10 * time.Minute))
		must(s.ChangePool("shop/addresses", func(p *v1alpha1.BackendPool) { p.Spec.Paused = true }))
		must(s.ChangePool("shop/addresses", func(p *v1alpha1.BackendPool) { p.Spec.Paused = false }))
		must(s.Settles(10 * time.Minute))
		must(s.keepTheirWayOut(7))
		if s.fired() != 1 {
			t.Error("Azure has called no pool one of interfaces")
		}
	})
}

// Many Services come and go, and endpoints move, without machine writes. An idle hour reads lists
// only.
func TestServicesCostNoWriteOfAMachine(t *testing.T) {
	stage(t, Options{Configure: ofInterfaces}, func(s *Stage) {
		for n := range 5 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/first", nil))
		must(s.Settles(10 * time.Minute))
		if n := len(s.machineWrites()); n == 0 {
			t.Error("no machine was written for the first Service")
		}
		for n := range 24 {
			must(s.AddService(fmt.Sprint("shop/web-", n), func(svc *corev1.Service) {
				if n%2 == 0 {
					setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
				}
			}))
		}
		must(s.Settles(20 * time.Minute))
		for n := range 24 {
			must(s.DeleteService(fmt.Sprint("shop/web-", n)))
		}
		must(s.Settles(20 * time.Minute))
		if wrote := s.machineWrites(); len(wrote) > 0 {
			t.Errorf("Services wrote %v", wrote)
		}
		idle := time.Now()
		must(s.Rests(400))
		lists := 0
		for _, c := range s.emu.Calls(func(c armemu.Call) bool { return c.Time.After(idle) }) {
			if !strings.Contains(c.Path, "/networkInterfaces") && !strings.Contains(c.Path, "/Microsoft.Compute/") {
				continue
			}
			if lists++; c.Kind != armemu.KindList {
				t.Errorf("an idle hour asks %s %s", c.Method, c.Path)
			}
		}
		if lists > 2 {
			t.Errorf("an idle hour lists machines %d times", lists)
		}
	})
}

// served reports whether a Service has an address.
func (s *Stage) served(key string) bool {
	f, err := s.facts()
	must(err)
	return slices.ContainsFunc(f.services, func(svc corev1.Service) bool {
		return svc.Namespace+"/"+svc.Name == key && len(svc.Status.LoadBalancer.Ingress) > 0
	})
}

// 36 virtual machines join, each changing the load balancer's etag twice. A Service added meanwhile
// still gets its load balancer write.
func TestAServiceAmongMachinesThatJoin(t *testing.T) {
	stage(t, Options{Configure: func(c *config.Config) { ofInterfaces(c); c.ParallelMachines = new(5) }}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(10 * time.Minute))
		for n := 1; n <= 36; n++ {
			must(s.AddNode(3 * n)) // in no scale set
		}
		s.Pass(30 * time.Second)
		must(s.AddService("shop/api", nil))
		came := time.Now()
		for !s.served("shop/api") && time.Since(came) < time.Hour {
			s.Pass(5 * time.Second)
		}
		if took := time.Since(came); took > 2*time.Minute {
			t.Errorf("the Service was served after %s", took)
		}
		must(s.Settles(30 * time.Minute))
	})
}
