// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
)

const (
	attackers = 20
	// maxRatio limits the neighbor's lag relative to the undisturbed one.
	maxRatio = 2
	// neighborChanges is the number of measured endpoint changes, one every changeEvery.
	neighborChanges = 12
	changeEvery     = 11 * time.Second
)

// flapping are attacks allowed by the role edit: each step changes one Service, every 100 ms. round
// counts the changes of that Service.
var flapping = []struct {
	name string
	make func(*corev1.Service)
	step func(s *Stage, service string, round int) error
}{
	{name: "annotation", step: specChanges(func(svc *corev1.Service, round int) {
		setAnnotation(svc, annotation+"azure-load-balancer-tcp-idle-timeout", fmt.Sprint(4+round%26))
	})},
	{name: "traffic policy", step: specChanges(func(svc *corev1.Service, round int) {
		setPolicy(svc, []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster}[round%2])
	})},
	{name: "ports", step: specChanges(func(svc *corev1.Service, round int) { svc.Spec.Ports[0].Port = int32(1000 + round%2) })}, //nolint:gosec // a port
	{name: "source ranges", step: specChanges(func(svc *corev1.Service, round int) {
		svc.Spec.LoadBalancerSourceRanges = []string{fmt.Sprintf("100.%d.0.0/16", 64+round%60)}
	})},
	{name: "rejected addresses", make: func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") },
		step: specChanges(func(svc *corev1.Service, round int) {
			setAnnotation(svc, annotation+"azure-load-balancer-ipv4", fmt.Sprintf("192.168.0.%d", 1+round%250))
		})},
	{name: "DNS label", step: func(s *Stage, service string, round int) error {
		label := fmt.Sprintf("%s-%d", parseKey(service).Name, round%2)
		return s.ChangeService(service, func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-dns-label-name", label) })
	}},
	{name: "deleted and created", step: func(s *Stage, service string, round int) error {
		if round%2 == 0 {
			return s.DeleteService(service)
		}
		return s.AddService(service, nil)
	}},
	{name: "endpoints", make: func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) },
		step: func(s *Stage, service string, round int) error {
			return s.SetEndpoints(service, map[int]bool{round % 3: true})
		}},
}

func specChanges(edit func(svc *corev1.Service, round int)) func(s *Stage, service string, round int) error {
	return func(s *Stage, service string, round int) error {
		return s.ChangeService(service, func(svc *corev1.Service) { edit(svc, round) })
	}
}

// neighbor measures a namespace while another one attacks.
type neighbor struct {
	*Stage
	attack func(service string, round int) error
	steps  int
}

// passTime waits while the attack continues.
func (n *neighbor) passTime() {
	if n.attack != nil {
		if err := n.attack(fmt.Sprintf("shop/s%d", n.steps%attackers), n.steps/attackers); err != nil && !isIgnorable(err) {
			failOn(err)
		}
	}
	n.steps++
	n.Sleep(100 * time.Millisecond)
}

// waitUntil returns the time until a condition holds.
func (n *neighbor) waitUntil(holds func() bool) time.Duration {
	for start := time.Now(); ; n.passTime() {
		if passed := time.Since(start); holds() || passed > 5*time.Minute {
			return passed
		}
	}
}

// moveEndpoint returns the time until a pool write for a moved endpoint is complete.
func (n *neighbor) moveEndpoint(to int) time.Duration {
	failOn(n.SetEndpoints("blog/web", map[int]bool{to: true}))
	address, _ := nodeAddresses(to)
	arrived := false
	return n.waitUntil(func() bool {
		body, _ := n.emulator.Get(network + "loadBalancers/" + clusterName)
		var b loadBalancer
		failOn(json.Unmarshal(body, &b))
		at := slices.IndexFunc(b.Properties.Pools, func(p pool) bool { return p.Name == "blog-web" })
		p := b.Properties.Pools[at]
		arrived = arrived || slices.Equal(p.managedMembers(func(string) bool { return false }), []string{address})
		return arrived && p.Properties.State == "Succeeded"
	})
}

// addService returns the time until a new Service has an address.
func (n *neighbor) addService(key string) time.Duration {
	failOn(n.AddService(key, nil))
	return n.waitUntil(func() bool {
		svc := &corev1.Service{}
		failOn(n.userClient.Get(ctx, parseKey(key), svc))
		return len(svc.Status.LoadBalancer.Ingress) > 0
	})
}

// lags are the neighbor's maximum delays.
type lags struct{ endpoint, median, service time.Duration }

// twoSecondWrites is the latency scale for 2 s per load balancer or pool write.
const twoSecondWrites = 2. / 27

// newNeighbor returns a neighbor with idle Services, next to the attacker's.
func newNeighbor(s *Stage, make func(*corev1.Service)) *neighbor {
	for i := range 3 {
		failOn(s.AddNode(i))
	}
	failOn(s.CreatePublicIP(namespaceIPName("blog")))
	s.Start()
	failOn(s.AddService("blog/web", func(svc *corev1.Service) {
		setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
		setAnnotation(svc, annotation+"azure-dns-label-name", "theirs")
		svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/25"}
	}))
	failOn(s.SetEndpoints("blog/web", map[int]bool{0: true}))
	failOn(s.AddService("blog/named", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", namespaceIPName("blog")) }))
	for i := range attackers {
		failOn(s.AddService(fmt.Sprintf("shop/s%d", i), make))
	}
	failOn(s.WaitInSync(10 * time.Minute))
	s.Sleep(5 * time.Minute)
	return &neighbor{Stage: s}
}

// measureNeighbor measures a neighbor with 2 s per load balancer or pool write.
func measureNeighbor(t *testing.T, make func(*corev1.Service), step func(s *Stage, service string, round int) error) (worst lags) {
	t.Helper()
	runStage(t, Options{Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		n := newNeighbor(s, make)
		if step != nil {
			n.attack = func(service string, round int) error { return step(s, service, round) }
		}
		for start := time.Now(); time.Since(start) < 30*time.Second; {
			n.passTime()
		}
		var durations []time.Duration
		for i := range neighborChanges {
			start := time.Now()
			durations = append(durations, n.moveEndpoint((i+1)%3))
			for time.Since(start) < changeEvery {
				n.passTime()
			}
		}
		for i := range 3 {
			worst.service = max(worst.service, n.addService(fmt.Sprintf("blog/new-%d", i)))
		}
		slices.Sort(durations)
		worst.endpoint, worst.median = durations[len(durations)-1], durations[len(durations)/2]
		writes := s.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))
		t.Logf("endpoint: %s at most, median %s; new Service: %s at most; %d writes", worst.endpoint, worst.median, worst.service, len(writes))
	})
	return worst
}

// A namespace with flapping Services delays another namespace's endpoints and new Services by at
// most their undisturbed lag.
func TestFlappingServicesDoNotDelayANeighbor(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	undisturbed := measureNeighbor(t, nil, nil)
	for _, attack := range flapping {
		t.Run(attack.name, func(t *testing.T) {
			got := measureNeighbor(t, attack.make, attack.step)
			if got.endpoint > maxRatio*undisturbed.endpoint {
				t.Errorf("endpoint change took %s, want at most %d times %s", got.endpoint, maxRatio, undisturbed.endpoint)
			}
			if got.service > maxRatio*undisturbed.service {
				t.Errorf("new Service took %s, want at most %d times %s", got.service, maxRatio, undisturbed.service)
			}
		})
	}
}
