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
	name  string
	short bool
	make  func(*corev1.Service)
	step  func(s *Stage, service string, round int) error
}{
	{name: "annotation", short: true, step: changes(func(svc *corev1.Service, round int) {
		setAnnotation(svc, annotation+"azure-load-balancer-tcp-idle-timeout", fmt.Sprint(4+round%26))
	})},
	{name: "traffic policy", short: true, step: changes(func(svc *corev1.Service, round int) {
		setPolicy(svc, []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster}[round%2])
	})},
	{name: "ports", step: changes(func(svc *corev1.Service, round int) { svc.Spec.Ports[0].Port = int32(1000 + round%2) })}, //nolint:gosec // a port
	{name: "source ranges", step: changes(func(svc *corev1.Service, round int) {
		svc.Spec.LoadBalancerSourceRanges = []string{fmt.Sprintf("100.%d.0.0/16", 64+round%60)}
	})},
	{name: "rejected addresses", make: func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-internal", "true") },
		step: changes(func(svc *corev1.Service, round int) {
			setAnnotation(svc, annotation+"azure-load-balancer-ipv4", fmt.Sprintf("192.168.0.%d", 1+round%250))
		})},
	{name: "DNS label", step: func(s *Stage, service string, round int) error {
		label := fmt.Sprintf("%s-%d", split(service).Name, round%2)
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
			return s.Endpoints(service, map[int]bool{round % 3: true})
		}},
}

func changes(edit func(svc *corev1.Service, round int)) func(s *Stage, service string, round int) error {
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

// pass lets time pass while the attack continues.
func (n *neighbor) pass() {
	if n.attack != nil {
		if err := n.attack(fmt.Sprintf("shop/s%d", n.steps%attackers), n.steps/attackers); err != nil && !passes(err) {
			must(err)
		}
	}
	n.steps++
	n.Pass(100 * time.Millisecond)
}

// waits returns the time until a condition holds.
func (n *neighbor) waits(holds func() bool) time.Duration {
	for start := time.Now(); ; n.pass() {
		if passed := time.Since(start); holds() || passed > 5*time.Minute {
			return passed
		}
	}
}

// movesEndpoint returns the time until a pool write for a moved endpoint is complete.
func (n *neighbor) movesEndpoint(to int) time.Duration {
	must(n.Endpoints("blog/web", map[int]bool{to: true}))
	address, _ := addressesOf(to)
	arrived := false
	return n.waits(func() bool {
		body, _ := n.emu.Get(network + "loadBalancers/" + clusterName)
		var b balancer
		must(json.Unmarshal(body, &b))
		at := slices.IndexFunc(b.Properties.Pools, func(p pool) bool { return p.Name == "blog-web" })
		p := b.Properties.Pools[at]
		arrived = arrived || slices.Equal(p.members(func(string) bool { return false }), []string{address})
		return arrived && p.Properties.State == "Succeeded"
	})
}

// addsService returns the time until a new Service has an address.
func (n *neighbor) addsService(key string) time.Duration {
	must(n.AddService(key, nil))
	return n.waits(func() bool {
		svc := &corev1.Service{}
		must(n.people.Get(ctx, split(key), svc))
		return len(svc.Status.LoadBalancer.Ingress) > 0
	})
}

// lags are the neighbor's maximum delays.
type lags struct{ endpoint, median, service time.Duration }

// twoSecondWrites is the latency scale for 2 s per load balancer or pool write.
const twoSecondWrites = 2. / 27

// furnished returns a neighbor with idle Services, next to the attacker's.
func furnished(s *Stage, make func(*corev1.Service)) *neighbor {
	for i := range 3 {
		must(s.AddNode(i))
	}
	must(s.PublicIP(peoplesIP("blog")))
	s.Start()
	must(s.AddService("blog/web", func(svc *corev1.Service) {
		setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal)
		setAnnotation(svc, annotation+"azure-dns-label-name", "theirs")
		svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/25"}
	}))
	must(s.Endpoints("blog/web", map[int]bool{0: true}))
	must(s.AddService("blog/named", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", peoplesIP("blog")) }))
	for i := range attackers {
		must(s.AddService(fmt.Sprintf("shop/s%d", i), make))
	}
	must(s.Settles(10 * time.Minute))
	s.Pass(5 * time.Minute)
	return &neighbor{Stage: s}
}

// measure measures a neighbor with 2 s per load balancer or pool write.
func measure(t *testing.T, make func(*corev1.Service), step func(s *Stage, service string, round int) error) (worst lags) {
	t.Helper()
	stage(t, Options{Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		n := furnished(s, make)
		if step != nil {
			n.attack = func(service string, round int) error { return step(s, service, round) }
		}
		for start := time.Now(); time.Since(start) < 30*time.Second; {
			n.pass()
		}
		var all []time.Duration
		for i := range neighborChanges {
			start := time.Now()
			all = append(all, n.movesEndpoint((i+1)%3))
			for time.Since(start) < changeEvery {
				n.pass()
			}
		}
		for i := range 3 {
			worst.service = max(worst.service, n.addsService(fmt.Sprintf("blog/new-%d", i)))
		}
		slices.Sort(all)
		worst.endpoint, worst.median = all[len(all)-1], all[len(all)/2]
		writes := s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))
		t.Logf("endpoint: %s at most, median %s; new Service: %s at most; %d writes", worst.endpoint, worst.median, worst.service, len(writes))
	})
	return worst
}

// A namespace whose Services flap delays another namespace's endpoints and new Services by at most
// their undisturbed lag.
func TestFlappingServicesDoNotDelayANeighbor(t *testing.T) {
	undisturbed := measure(t, nil, nil)
	for _, attack := range flapping {
		if testing.Short() && !attack.short {
			continue
		}
		t.Run(attack.name, func(t *testing.T) {
			is := measure(t, attack.make, attack.step)
			if is.endpoint > maxRatio*undisturbed.endpoint {
				t.Errorf("endpoint change took %s, want at most %d times %s", is.endpoint, maxRatio, undisturbed.endpoint)
			}
			if is.service > maxRatio*undisturbed.service {
				t.Errorf("new Service took %s, want at most %d times %s", is.service, maxRatio, undisturbed.service)
			}
		})
	}
}
