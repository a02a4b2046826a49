// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

func many(owner string, first, ports int) ServiceParts {
	var list []int32
	for i := range ports {
		list = append(list, int32(first+i)) //nolint:gosec // a port
	}
	return newTestParts(owner, list...)
}

func inPool(s ServiceParts, name string) ServiceParts {
	for i := range s.Rules {
		s.Rules[i].Pool = name
	}
	s.Pools = []lb.Pool{pool(name)}
	return s
}

// Azure counts a machine's rules on a load balancer and its twin.
func TestMachinesHaveFewRules(t *testing.T) {
	balancer := Make(Input{Observed: lb.LoadBalancer{ID: lb.LoadBalancerID{Name: "kubernetes"}}, Services: []ServiceParts{many("a1", 1000, 100)}}).Next
	balancer.Etag = "1"
	beside := func(n int) Counts { return Counts{"kubernetes": n} }
	for name, tt := range map[string]struct {
		beside   Counts
		nat      map[string]int
		services []ServiceParts
		refused  string // owners
	}{
		"all that there may be":        {beside(100), nil, []ServiceParts{many("a2", 2000, 99)}, ""},
		"one too many":                 {beside(100), nil, []ServiceParts{many("a2", 2000, 100)}, "a2"},
		"the next one fits":            {beside(0), nil, []ServiceParts{many("a2", 2000, 300), many("a3", 4000, 199)}, "a2"},
		"together they are too many":   {beside(0), nil, []ServiceParts{many("a2", 2000, 100), many("a3", 4000, 100)}, "a3"},
		"inbound NAT rules":            {beside(0), map[string]int{"kubernetes": 1}, []ServiceParts{many("a2", 2000, 199)}, "a2"},
		"of one machine":               {beside(0), map[string]int{"": 1}, []ServiceParts{many("a2", 2000, 199)}, "a2"},
		"another pool":                 {Counts{"kubernetes-ipv6": 299}, nil, []ServiceParts{many("a2", 2000, 99)}, ""},
		"as many in another pool":      {Counts{"v6": 250}, nil, []ServiceParts{inPool(many("a1", 1000, 100), "v6")}, "a1"},
		"pools of addresses":           {nil, nil, []ServiceParts{many("a2", 2000, 300)}, ""},
		"what is too many already":     {beside(250), nil, []ServiceParts{many("a1", 1000, 100)}, ""},
		"one with fewer rules":         {beside(250), nil, []ServiceParts{many("a1", 1000, 99)}, ""},
		"one with more rules":          {beside(250), nil, []ServiceParts{many("a1", 1000, 101)}, "a1"},
		"a Service that leaves counts": {beside(150), nil, []ServiceParts{gone("a1"), many("a2", 2000, 60)}, "a2"},
	} {
		t.Run(name, func(t *testing.T) {
			balancer.NATRules = tt.nat
			p := Make(Input{Observed: balancer, Services: tt.services, PeerRules: tt.beside, MaxRules: 1500})
			var refused []string
			for _, s := range tt.services {
				if err := p.Rejected[s.Owner]; err != nil {
					refused = append(refused, s.Owner)
					if !strings.Contains(err.Error(), "Azure allows 299 for a network interface") {
						t.Error(err)
					}
				}
			}
			if strings.Join(refused, " ") != tt.refused {
				t.Errorf("refused %q, want %q", refused, tt.refused)
			}
		})
	}
}
