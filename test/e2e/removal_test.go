// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
)

// stopController shuts a controller down gracefully.
func (l *lab) stopController(weir *program) {
	l.t.Helper()
	l.must(weir.Signal(syscall.SIGTERM))
	_ = weir.Wait() // another test checks the exit code
}

// deletions returns Azure's deletions and its writes of anything but pools.
func (l *lab) deletions() []string {
	var deletions []string
	for _, c := range l.emulator.Calls() {
		whole := c.Method == "PUT" && !strings.Contains(strings.ToLower(c.Path), "/backendaddresspools/")
		if c.Method == "DELETE" || whole {
			deletions = append(deletions, c.Method+" "+c.Path)
		}
	}
	return deletions
}

func (l *lab) expectMetric(weir *program, line string) {
	l.t.Helper()
	l.eventually("metric "+line, func() error {
		body, err := get(weir.metrics, "/metrics")
		if err == nil && !strings.Contains(body, line+"\n") {
			err = fmt.Errorf("not there")
		}
		return err
	})
}

// A wrong --load-balancer-class removes nothing, endpoints are still followed, and reverting it
// restores normal operation. Services deleted in between are removed.
func TestAnotherClassTakesNothingAway(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	l.createLoadBalancerService("web", nil, n1)
	l.createLoadBalancerService("all", func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
	l.createLoadBalancerService("inside", func(s *corev1.Service) {
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] = "true"
	}, n1)
	flags := []string{"--leader-elect=false", "--cluster-name", l.namespace}
	weir := l.controller(flags...)
	before := map[string]string{}
	for _, name := range []string{"web", "all", "inside"} {
		before[name] = l.ingress(name, 1)[0]
	}
	l.becomes(l.namespace+"-web", "10.0.0.1")
	l.expectMetric(weir, `weir_services{state="ready"} 3`)
	parts := l.parts(l.loadBalancer())
	l.stopController(weir)
	l.emulator.ClearCalls()

	weir = l.controller(append(flags, "--load-balancer-class", "weir.dev/azrue")...)
	l.move("web", n1, n2)
	l.becomes(l.namespace+"-web", "10.0.0.1", "10.0.0.2")
	l.expectMetric(weir, `weir_services{state="retained"} 3`)
	for name := range before {
		l.expectEvents(name, "LoadBalancerKept")
	}
	if n := strings.Count(weir.ReadOutput(), `keeps what Weir made for it","service":"`+l.namespace+`/web"`); n != 1 {
		t.Errorf("the log names the Service %d times, want once", n)
	}
	l.stopController(weir)
	if deletions := l.deletions(); len(deletions) > 0 {
		t.Errorf("with another class Azure saw\n%s", strings.Join(deletions, "\n"))
	}
	if now := l.parts(l.loadBalancer()); !slices.Equal(now, parts) {
		t.Errorf("the load balancer had\n%s\nand has\n%s", strings.Join(parts, "\n"), strings.Join(now, "\n"))
	}

	weir = l.controller(flags...)
	l.expectMetric(weir, `weir_services{state="ready"} 3`)
	for name, ip := range before {
		if now := l.ingress(name, 1)[0]; now != ip {
			t.Errorf("Service %s had %s, and has %s", name, ip, now)
		}
	}
	if deletions := l.deletions(); len(deletions) > 0 {
		t.Errorf("set back, Azure saw\n%s", strings.Join(deletions, "\n"))
	}
	l.stopController(weir)

	l.controller(append(flags, "--load-balancer-class", "weir.dev/azrue")...)
	for name := range before {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace}}
		l.must(l.cluster.Delete(t.Context(), s))
		l.gone("Service "+name, s)
	}
	for _, id := range []string{l.loadBalancer(), l.loadBalancer() + "-internal"} {
		if body, ok := l.emulator.Get(id); ok {
			t.Errorf("left in Azure: %s", body)
		}
	}
}

// With a changed --cluster-name Weir exits at start with reason and remedy, and without Azure
// writes. The new name is accepted if no Service has Azure resources.
func TestAnotherClusterNameStopsTheStart(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	n1 := l.node("n1", "10.0.0.1")
	weir := l.controller("--leader-elect=false", "--cluster-name", "mistyped")
	l.expectMetric(weir, `weir_services{state="ready"} 0`)
	l.stopController(weir)

	weir = l.controller("--leader-elect=false", "--cluster-name", l.namespace)
	l.createLoadBalancerService("web", nil, n1)
	ip := l.ingress("web", 1)[0]
	l.becomes(l.namespace+"-web", "10.0.0.1")
	l.stopController(weir)
	l.emulator.ClearCalls()

	weir = l.controller("--leader-elect=false", "--cluster-name", l.namespace+"-new")
	if code := weir.ExitCode(); code != 2 {
		t.Errorf("it ends with %d, want 2", code)
	}
	for _, wantText := range []string{`--cluster-name "` + l.namespace + `-new"`, `under the name "` + l.namespace + `"`, "ConfigMap weir-system/weir-controller", `Set --cluster-name "` + l.namespace + `"`} {
		if !strings.Contains(weir.ReadOutput(), wantText) {
			t.Errorf("it does not say %s:\n%s", wantText, weir.ReadOutput())
		}
	}
	if calls := l.emulator.Calls(); len(calls) > 0 {
		t.Errorf("Azure saw %v", calls)
	}
	if out, _ := l.runPlan("--cluster-name", l.namespace+"-new"); !strings.Contains(out, "! the controller would not start") {
		t.Errorf("the plan says nothing of it:\n%s", out)
	}

	l.controller("--leader-elect=false", "--cluster-name", l.namespace)
	if now := l.ingress("web", 1)[0]; now != ip {
		t.Errorf("Service web had %s, and has %s", ip, now)
	}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: l.namespace}}
	l.must(l.cluster.Delete(t.Context(), web))
	l.gone("Service web", web)
}

// A setting that would change every address: nothing is written to Azure, every Service reports it,
// and endpoints are followed. A Service released by its owner changes alone, a deleted one is
// removed, and the rest changes with the controller's flag.
func TestManyAddressesAreNotTakenAway(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	settings := func(group string) {
		l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"`+group+`","loadBalancerResourceGroup":"rg","vnetResourceGroup":"rg","vnetName":"vnet","localServicePools":"own","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	}
	settings("rg")
	n1, n2 := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		l.createLoadBalancerService(name, nil, n1)
	}
	flags := []string{"--leader-elect=false", "--cluster-name", l.namespace}
	weir := l.controller(flags...)
	before := map[string]string{}
	for _, name := range names {
		before[name] = l.ingress(name, 1)[0]
	}
	l.expectMetric(weir, `weir_services{state="ready"} 5`)
	for _, name := range names {
		l.becomes(l.namespace+"-"+name, "10.0.0.1")
	}
	l.stopController(weir)
	l.emulator.ClearCalls()

	settings("elsewhere")
	if out, code := l.runPlan(); code != 3 || !strings.Contains(out, "! 5 public IPs are DELETED") && !strings.Contains(out, "! 5 Services get another address") {
		t.Errorf("the plan ends with %d, and says\n%s", code, out)
	}
	weir = l.controller(flags...)
	l.expectMetric(weir, `weir_services{state="blocked"} 5`)
	l.expectEvents("a", "LoadBalancerRemovalHeld")
	l.move("a", n1, n2)
	l.becomes(l.namespace+"-a", "10.0.0.1", "10.0.0.2")
	if deletions := l.deletions(); len(deletions) > 0 {
		t.Errorf("Azure saw\n%s", strings.Join(deletions, "\n"))
	}

	l.edit("a", func(s *corev1.Service) { s.Annotations["weir.dev/allow-removal"] = "true" })
	e := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: l.namespace}}
	l.must(l.cluster.Delete(t.Context(), e))
	l.gone("Service e", e)
	l.otherAddress("a", before["a"])
	l.expectMetric(weir, `weir_services{state="blocked"} 3`)
	for _, name := range []string{"b", "c", "d"} {
		if now := l.ingress(name, 1)[0]; now != before[name] {
			t.Errorf("Service %s had %s, and has %s", name, before[name], now)
		}
	}
	l.stopController(weir)

	l.controller(append(flags, "--allow-removal")...)
	for _, name := range []string{"b", "c", "d"} {
		l.otherAddress(name, before[name])
	}
	for _, name := range names[:4] {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace}}
		l.must(l.cluster.Delete(t.Context(), s))
		l.gone("Service "+name, s)
	}
}

// otherAddress waits until a Service's address changes.
func (l *lab) otherAddress(name, before string) {
	l.t.Helper()
	l.eventually("another address of Service "+name, func() error {
		if now := l.ingress(name, 1)[0]; now == before {
			return fmt.Errorf("still %s", now)
		}
		return nil
	})
}
