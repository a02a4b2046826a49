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
	writes, _ := s.trafficSince()
	for _, w := range writes {
		if strings.Contains(w, "/networkInterfaces/") || strings.Contains(w, "/Microsoft.Compute/") {
			machines = append(machines, w)
		}
	}
	return machines
}

// checkOutboundPool checks that every machine is in the unmanaged outbound pool.
func (s *Stage) checkOutboundPool(nodes int) error {
	for n := range nodes {
		id := s.machineID(n)
		if s.scaleSetName(n) == "" {
			id = network + "networkInterfaces/" + nodeName(n)
		}
		if body, ok := s.emulator.Get(id); ok && !strings.Contains(string(body), outboundPool) {
			return fmt.Errorf("node %d has lost its way out: %s", n, body)
		}
	}
	return nil
}

// Nodes join and leave despite failing machine writes, and their interfaces keep other pools.
func TestOverlappingMachineWrites(t *testing.T) {
	const (
		nics, sets, instances = "networkInterfaces/*", "virtualMachineScaleSets/*", "virtualMachineScaleSets/*/virtualMachines/*"
		times                 = 3
	)
	for name, rules := range map[string][]string{
		"another client was faster": {metFaults(nics, "put", times, "{bumpEtag: true}"), metFaults(sets, "patch", times, "{bumpEtag: true}"), metFaults(instances, "put", times, "{bumpEtag: true}")},
		"Compute has had enough": {
			metFaults(sets, "patch", 1, "{status: 429, code: OperationNotAllowed, message: busy, headers: {Retry-After: '120'}}"),
			metFaults(instances, "put", 1, "{status: 429, code: OperationNotAllowed, message: busy, headers: {Retry-After: '60'}}"),
		},
		"another request is under way": {metFaults(sets, "patch", times, "{status: 409, code: Conflict, message: another request}"), metFaults(instances, "put", times, "{status: 409, code: Conflict, message: another request}")},
		"answers get lost":             {metFaults(nics, "put", times, "{drop: true, applied: true}"), metFaults(sets, "patch", times, "{drop: true, applied: true}"), metFaults(instances, "put", times, "{drop: true}")},
		"operations fail":              {metFaults(nics, "put", times, "{operation: {fail: {code: InternalServerError, message: broken}}}"), metFaults(instances, "put", times, "{operation: {fail: {code: InternalServerError, message: broken}}}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runStage(t, Options{Configure: useInterfaces}, func(s *Stage) {
				for n := range 4 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AzureFaults(rules...))
				failOn(s.AddService("shop/web", nil))
				failOn(s.WaitInSync(30 * time.Minute))
				for n := 4; n < 8; n++ {
					failOn(s.AddNode(n))
				}
				for n := range 3 {
					failOn(s.ChangeNode(n, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }))
				}
				failOn(s.WaitInSync(30 * time.Minute))
				failOn(s.checkOutboundPool(8))
				if n := s.countFired(); n != len(rules) {
					t.Errorf("%d of %d rules have met a request", n, len(rules))
				}
			})
		})
	}
}

func metFaults(path, kind string, times int, action string) string {
	return fmt.Sprintf("{name: %q, match: {path: %q, kind: %s, maxMatches: %d}, action: %s}", kind+" "+path, path, kind, times, action)
}

// countFired returns how many fault rules matched a request.
func (s *Stage) countFired() int {
	names := map[string]bool{}
	for _, c := range s.emulator.Calls(func(c armemu.Call) bool { return c.Fault != "" }) {
		names[c.Fault] = true
	}
	return len(names)
}

// Machines are deleted while they join, or stopped and started: each is awaited, and others join
// meanwhile.
func TestMachinesThatComeAndGo(t *testing.T) {
	runStage(t, Options{Configure: useInterfaces}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(10 * time.Minute))
		for n := 3; n < 9; n++ {
			failOn(s.AddNode(n))
		}
		failOn(s.deleteMachine(4))
		failOn(s.DeleteNode(4))
		failOn(s.deleteMachine(5))      // its node is deleted later
		for _, n := range []int{6, 7} { // a virtual machine, and an instance
			failOn(s.sendMachineRequest(http.MethodPost, s.machineID(n)+"/deallocate"))
		}
		s.Sleep(2 * time.Minute)
		for _, n := range []int{6, 7} {
			failOn(s.sendMachineRequest(http.MethodPost, s.machineID(n)+"/start"))
		}
		failOn(s.DeleteNode(5))
		failOn(s.WaitInSync(20 * time.Minute))
		failOn(s.checkOutboundPool(9))
	})
}

// Both pool types coexist: a Service's pool of interfaces, and a pool of addresses on an unmanaged
// load balancer. Azure temporarily reports the latter as a pool of interfaces: it is read again.
func TestPoolsOfBothKinds(t *testing.T) {
	runStage(t, Options{Configure: useInterfaces}, func(s *Stage) {
		failOn(s.createUnmanaged())
		failOn(s.ChangeNamespace("shop", func(ns *corev1.Namespace) { ns.Annotations = map[string]string{grantAnnotation: unmanagedName} }))
		for n := range 4 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.bindPool("shop/addresses", unmanagedPools[0], ""))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.AzureFaults("{name: kind, match: {path: 'loadBalancers/edge/backendAddressPools/*', kind: put, maxMatches: 2}, action: {status: 400, code: ModificationOfNICIpConfigBackendPoolNotSupported, message: an interface}}"))
		for n := 4; n < 7; n++ {
			failOn(s.AddNode(n))
		}
		failOn(s.DeleteNode(0))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.ChangePool("shop/addresses", func(p *v1alpha1.BackendPool) { p.Spec.Paused = true }))
		failOn(s.ChangePool("shop/addresses", func(p *v1alpha1.BackendPool) { p.Spec.Paused = false }))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.checkOutboundPool(7))
		if s.countFired() != 1 {
			t.Error("Azure has called no pool one of interfaces")
		}
	})
}

// Many Services come and go, and endpoints move, without machine writes. An idle hour reads lists
// only.
func TestServicesCostNoWriteOfAMachine(t *testing.T) {
	runStage(t, Options{Configure: useInterfaces}, func(s *Stage) {
		for n := range 5 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/first", nil))
		failOn(s.WaitInSync(10 * time.Minute))
		if n := len(s.machineWrites()); n == 0 {
			t.Error("no machine was written for the first Service")
		}
		for n := range 24 {
			failOn(s.AddService(fmt.Sprint("shop/web-", n), func(svc *corev1.Service) {
				if n%2 == 0 {
					setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
				}
			}))
		}
		failOn(s.WaitInSync(20 * time.Minute))
		for n := range 24 {
			failOn(s.DeleteService(fmt.Sprint("shop/web-", n)))
		}
		failOn(s.WaitInSync(20 * time.Minute))
		if wrote := s.machineWrites(); len(wrote) > 0 {
			t.Errorf("Services wrote %v", wrote)
		}
		idle := time.Now()
		failOn(s.CheckIdleHour(400))
		lists := 0
		for _, c := range s.emulator.Calls(func(c armemu.Call) bool { return c.Time.After(idle) }) {
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

func (s *Stage) hasAddress(key string) bool {
	f, err := s.readObjects()
	failOn(err)
	return slices.ContainsFunc(f.services, func(svc corev1.Service) bool {
		return svc.Namespace+"/"+svc.Name == key && len(svc.Status.LoadBalancer.Ingress) > 0
	})
}

// 36 virtual machines join, each changing the load balancer's etag twice. A Service added during
// that time still gets its load balancer write.
func TestAServiceAmongMachinesThatJoin(t *testing.T) {
	runStage(t, Options{Configure: func(c *config.Config) { useInterfaces(c); c.ParallelMachines = new(5) }}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(10 * time.Minute))
		for n := 1; n <= 36; n++ {
			failOn(s.AddNode(3 * n)) // in no scale set
		}
		s.Sleep(30 * time.Second)
		failOn(s.AddService("shop/api", nil))
		came := time.Now()
		for !s.hasAddress("shop/api") && time.Since(came) < time.Hour {
			s.Sleep(5 * time.Second)
		}
		if elapsed := time.Since(came); elapsed > 2*time.Minute {
			t.Errorf("the Service was served after %s", elapsed)
		}
		failOn(s.WaitInSync(30 * time.Minute))
	})
}
