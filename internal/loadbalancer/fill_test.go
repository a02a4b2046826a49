// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A pool of interfaces has members although it shows no addresses.
func TestARuleStaysWithAPoolOfInterfaces(t *testing.T) {
	pool := func(name string) lb.PoolID { return lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "lb"}, Name: name} }
	observed := lb.LoadBalancer{
		Rules: []lb.Rule{{Name: "r", Pool: "nodes"}},
		Pools: []lb.Pool{{ID: pool("nodes"), NIC: true, Etag: "1"}, {ID: pool("own"), Etag: "1"}},
	}
	stay, waits := rulesToHold([]lb.Rule{{Name: "r", Pool: "own"}}, observed, []lb.PoolID{pool("own")}, nil)
	if stay[0].Pool != "nodes" || len(waits) != 1 {
		t.Errorf("the rule goes to %s, and waits for %v", stay[0].Pool, waits)
	}
}

// A new rule joins the shared pool while other rules wait there for its interim pool, which may never fill.
func TestANewRuleWhileTheSharedPoolIsOfTheOtherKind(t *testing.T) {
	pool := func(name string, members int, nic bool) lb.Pool {
		return lb.Pool{ID: lb.PoolID{Name: name}, Addresses: make([]lb.Address, members), NIC: nic}
	}
	converting := []*conversion{{pool: "k", interim: "k_addresses"}}
	for about, tt := range map[string]struct {
		pools   []lb.Pool
		others  string // the pool of a foreign rule
		awaited []lb.PoolID
		want    string
		waits   int
	}{
		"the interim pool is empty":              {[]lb.Pool{pool("K", 3, true), pool("k_addresses", 0, false)}, "K", []lb.PoolID{{Name: "k_addresses"}}, "k", 1},
		"it is not made yet":                     {[]lb.Pool{pool("k", 3, true)}, "k", []lb.PoolID{{Name: "k_addresses"}}, "k", 1},
		"it is filled":                           {[]lb.Pool{pool("k", 3, true), pool("k_addresses", 3, false)}, "k", nil, "k_addresses", 0},
		"the shared pool is being emptied":       {[]lb.Pool{pool("k", 3, true), pool("k_addresses", 2, false)}, "k_addresses", []lb.PoolID{{Name: "k_addresses"}}, "k_addresses", 0},
		"the shared pool is empty, with a rule":  {[]lb.Pool{pool("k", 0, false), pool("k_addresses", 0, false)}, "k", []lb.PoolID{{Name: "k_addresses"}}, "k_addresses", 0},
		"the shared pool is gone with its rules": {[]lb.Pool{pool("k_addresses", 0, false)}, "", []lb.PoolID{{Name: "k_addresses"}}, "k_addresses", 0},
	} {
		t.Run(about, func(t *testing.T) {
			observed := lb.LoadBalancer{Pools: tt.pools, Rules: []lb.Rule{{Name: "other", Pool: tt.others}}}
			stay, waits := rulesToHold([]lb.Rule{{Name: "new", Pool: "k_addresses"}}, observed, tt.awaited, converting)
			if stay[0].Pool != tt.want || len(waits) != tt.waits {
				t.Errorf("the rule goes to %s, and waits for %v; want %s, %d", stay[0].Pool, waits, tt.want, tt.waits)
			}
		})
	}
}

// counting is a cluster of three nodes that expects three members per pool; foreign interfaces have no machine.
type counting struct {
	Cluster
	Azure
	asked *int
	err   error
}

func (c counting) ResolveMachines(_ context.Context, pool lb.Pool) (lb.Pool, error) {
	*c.asked++
	return pool, c.err
}

func (counting) ForeignMembers(_ context.Context, pool lb.Pool) (members []string, err error) {
	for _, a := range pool.Addresses {
		if a.Machine == "" {
			members = append(members, a.Name)
		}
	}
	return members, nil
}

func (counting) NeedsMembers(_ string, _ lb.LoadBalancerID, _ service.Pool, pool lb.Pool) bool {
	return len(pool.Addresses) < 3
}

// Foreign interfaces do not fill a pool. Owners are read once, and only if flows are about to move there.
func TestInterfacesOfOthersDoNotFillAPool(t *testing.T) {
	of := func(own, foreign int) lb.Pool {
		p := lb.Pool{ID: lb.PoolID{Name: "K"}, NIC: true}
		for n := range own + foreign {
			a := lb.Address{Name: fmt.Sprint(n)}
			if n < own {
				a.Machine = "m" + a.Name
			}
			p.Addresses = append(p.Addresses, a)
		}
		return p
	}
	broken := errors.New("not now")
	for about, tt := range map[string]struct {
		shared    lb.Pool
		rule      string // the pool of the Services' rules; empty for none
		leaves    bool
		rehearsal bool
		fails     error
		want      string
	}{
		"all":                        {of(3, 0), "k_addresses", false, false, nil, "k, asked 1"},
		"all, and strangers":         {of(3, 3), "k_addresses", false, false, nil, "k, asked 1"},
		"strangers":                  {of(0, 3), "k_addresses", false, false, nil, "k_addresses, asked 1"},
		"two, and strangers":         {of(2, 3), "k_addresses", false, false, nil, "k_addresses, asked 1"},
		"two":                        {of(2, 0), "k_addresses", false, false, nil, "k_addresses, asked 0"},
		"flows are there":            {of(0, 3), "k", false, false, nil, "k, asked 0"},
		"new":                        {of(0, 3), "", false, false, nil, "k, asked 0"},
		"it leaves another for this": {of(0, 3), "", true, false, nil, "k, asked 1, waits for [K]"},
		"a rehearsal":                {of(0, 3), "k_addresses", false, true, nil, "k, asked 0"},
		"nobody can tell":            {of(3, 0), "k_addresses", false, false, broken, "not now"},
	} {
		t.Run(about, func(t *testing.T) {
			requested := 0
			n := counting{asked: &requested, err: tt.fails}
			l := &loadBalancer{LoadBalancers: &LoadBalancers{cfg: Config{Azure: n, Cluster: n, SkipDrain: tt.rehearsal}}}
			interim := lb.Pool{ID: lb.PoolID{Name: "k_addresses"}, Addresses: make([]lb.Address, 3)}
			observed := lb.LoadBalancer{Pools: []lb.Pool{tt.shared, interim}}
			var jobs []*job
			for _, owner := range []string{"aa", "bb"} {
				if tt.rule != "" {
					observed.Rules = append(observed.Rules, lb.Rule{Name: owner + "-TCP-80", Pool: tt.rule})
				}
				j := newJob(Request{Owner: owner, Desired: &service.Spec{
					Internal: true, // it arrives first
					Rules:    []lb.Rule{{Name: owner + "-TCP-80", Pool: "k"}}, Pools: []service.Pool{{Name: "k", Family: lb.IPv4, Shared: true, Interfaces: true}},
				}}, false)
				if tt.leaves {
					j.steps = append(j.steps, step{remove: true})
				}
				jobs = append(jobs, j)
			}
			got := ""
			if err := l.holdRules(t.Context(), jobs, observed, nil); err == nil {
				got = fmt.Sprintf("%s, asked %d", jobs[1].rules[0].Pool, requested)
			} else if got = err.Error(); errors.Is(err, broken) {
				got = broken.Error()
			}
			if tt.leaves && len(jobs[1].FillingPools) > 0 {
				got += fmt.Sprintf(", waits for [%s]", tt.shared.ID.Name)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
