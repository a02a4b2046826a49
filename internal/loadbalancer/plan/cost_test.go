// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// crowd returns Services with own public IPs and the given number of ports.
func crowd(from, services, ports int) []ServiceParts {
	var parts []ServiceParts
	for i := range services {
		owner := fmt.Sprintf("a%031x", from+i)
		s := ServiceParts{
			Owner: owner, DedicatedPools: []string{fmt.Sprint("shop-s", from+i), fmt.Sprint("shop-s", from+i, "-ipv6")},
			Frontends: []lb.Frontend{{Name: owner, PublicIP: fmt.Sprint("/pip/kubernetes-", owner)}},
			Pools:     []lb.Pool{pool(fmt.Sprint("shop-s", from+i))},
		}
		for n := range ports {
			name := fmt.Sprint(owner, "-TCP-", n+1)
			s.Probes = append(s.Probes, lb.Probe{Name: name, Protocol: lb.ProbeTCP, Port: int32(n + 1)})
			s.Rules = append(s.Rules, lb.Rule{
				Name: name, Transport: lb.TCP, Frontend: owner, Pool: s.Pools[0].ID.Name, Probe: name,
				FrontendPort: int32(n + 1), BackendPort: int32(n + 1),
			})
		}
		parts = append(parts, s)
	}
	return parts
}

// holding returns a load balancer with these Services.
func holding(services []ServiceParts, mostRules int) Input {
	in := Input{Observed: lb.LoadBalancer{Etag: "1"}, MaxRules: mostRules, Services: services}
	in.Observed = Make(in).Next
	for _, s := range services {
		in.Others = append(in.Others, s.Owner)
	}
	in.Services = nil
	return in
}

// crossed swaps the requested ports of adjacent Services.
func crossed(services []ServiceParts) []ServiceParts {
	for i := range services[1:] {
		services[i+1].Frontends[0].PublicIP = services[i].Frontends[0].PublicIP
	}
	return services
}

var costs = []struct {
	about string
	of    func(n int) Input // 1500 is the largest
}{
	{"one Service with all rules", func(n int) Input { return Input{MaxRules: n, Services: crowd(0, 1, n)} }},
	{"one Service with all rules that are there", func(n int) Input {
		in := holding(crowd(0, 1, n), n)
		in.Services = crowd(0, 1, n)
		return in
	}},
	{"a batch without room", func(n int) Input {
		in := holding(crowd(0, n, 1), n)
		in.Services = crowd(n, n/15, n)
		return in
	}},
	{"a batch whose ports are taken", func(n int) Input {
		in := holding(crowd(0, n/15, 10), n)
		in.Services = crossed(crowd(0, n/15, 10))
		return in
	}},
	{"a batch among many", func(n int) Input {
		in := holding(crowd(0, n*2/5, 2), n)
		in.Services = crowd(n/5, n/15, 2)
		for i := range 5 * n {
			in.Others = append(in.Others, fmt.Sprintf("b%031x", i))
		}
		return in
	}},
	{"all go", func(n int) Input {
		in := holding(crowd(0, n/15, 15), n)
		for _, owner := range in.Others {
			in.Services = append(in.Services, gone(owner))
		}
		in.Others = nil
		return in
	}},
}

func BenchmarkMake(b *testing.B) {
	for _, c := range costs {
		b.Run(c.about, func(b *testing.B) {
			in := c.of(1500)
			for b.Loop() {
				Make(in)
			}
		})
	}
}

// A plan of the largest load balancer for a full batch is fast.
func TestTheLargestLoadBalancerIsPlanned(t *testing.T) {
	for _, c := range costs {
		in := c.of(1500)
		limit := time.AfterFunc(10*time.Second, func() { panic(c.about + ": no end") }) // a hundred times the usual duration
		Make(in)
		limit.Stop()
	}
}
