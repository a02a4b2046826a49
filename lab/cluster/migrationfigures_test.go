// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
)

// manyBasics returns 50 Services: 35 with public addresses, 15 with private ones.
func manyBasics() (services []basicService) {
	for n := range 50 {
		services = append(services, basicService{key: fmt.Sprintf("shop/s%02d", n), internal: n%10 >= 7, method: []string{"Dynamic", "Static"}[n%2]})
	}
	return services
}

// servingMachines returns the number of machines that serve each Service, counting only frontends, rules
// and members without an Azure operation in progress.
func (s *Stage) servingMachines() (map[string]int, error) {
	c, err := s.readAzure()
	if err != nil {
		return nil, err
	}
	settled := map[string]bool{}
	var resources []struct {
		ID   string `json:"id"`
		Body struct {
			Properties struct {
				State string `json:"provisioningState"`
			} `json:"properties"`
		} `json:"body"`
	}
	if err := json.Unmarshal([]byte(c.text), &resources); err != nil {
		return nil, err
	}
	for _, r := range resources {
		settled[strings.ToLower(r.ID)] = r.Body.Properties.State == "Succeeded"
	}
	got := map[string]int{}
	for _, b := range c.balancers {
		at := strings.ToLower(network + "loadBalancers/" + b.Name)
		members := map[string]int{}
		for _, p := range b.Properties.Pools {
			for member := range c.interfaceMembers[at+"/backendaddresspools/"+strings.ToLower(p.Name)] {
				nic, _, _ := strings.Cut(member, "/ipconfigurations/")
				if settled[nic] {
					members[p.Name]++
				}
			}
			for _, a := range p.Properties.Addresses {
				if a.Properties.Interface == nil {
					members[p.Name]++
				}
			}
		}
		for _, r := range b.Properties.Rules {
			front, _, _ := strings.Cut(r.Name, "-")
			if settled[at] {
				got[s.serviceOwners[front]] = members[r.Properties.Pool.lastSegment()]
			}
		}
	}
	return got, nil
}

// outages records how long each Service had no machine or fewer than all, the number of requests,
// and the end time.
type outages struct {
	none, fewer map[string]time.Duration
	writes, all int
	took        time.Duration
}

const (
	looksEvery = 5 * time.Second
	ofFigures  = 30 // nodes
)

// watchOutages polls all Services until an outage has started and all are fully served again.
func (s *Stage) watchOutages(of []basicService, limit time.Duration) (outages, error) {
	o := outages{none: map[string]time.Duration{}, fewer: map[string]time.Duration{}}
	for range limit / looksEvery {
		s.Sleep(looksEvery)
		got, err := s.servingMachines()
		if err != nil {
			return o, err
		}
		whole := len(o.none) == len(of)
		for _, b := range of {
			if got[b.key] == 0 {
				o.none[b.key] += looksEvery
			}
			if got[b.key] < ofFigures {
				o.fewer[b.key] += looksEvery
				whole = false
			}
		}
		if whole {
			return o, nil
		}
	}
	return o, fmt.Errorf("after %s: %d Services of %d were not reached, and not all have come back", limit, len(o.none), len(of))
}

// addOutages records outages until everything is restored.
func (s *Stage) addOutages(o *outages) {
	for _, c := range s.emulator.Calls() {
		o.took = c.Time.Sub(s.start).Round(looksEvery)
		if o.all++; c.Method != http.MethodGet {
			o.writes++
		}
	}
}

// formatRange formats the minimum and maximum over all Services.
func formatRange(of map[string]time.Duration) string {
	short, long := slices.Min(slices.Collect(maps.Values(of))), slices.Max(slices.Collect(maps.Values(of)))
	if short == long {
		return short.String()
	}
	return short.String() + " to " + long.String()
}

// manualMigration performs the migration in the order of Microsoft's module, one request at a time.
type manualMigration struct {
	*azure.Client
	machines *azure.MachineClient
}

func (s *Stage) person() (manualMigration, error) {
	endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		return manualMigration{}, err
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential{}, Transport: s.emulator.Transport()})
	return manualMigration{client, azure.NewMachineClient(client)}, err
}

// runMigration makes all load balancers Standard: public IPs become Static, machines leave, load
// balancers are deleted and recreated empty, public IPs become Standard, then frontends, probes and
// rules are added and machines join. The module's security group write is omitted, as the group
// already allows the traffic.
func (m manualMigration) runMigration() error {
	err := m.eachIP(func(ip *lb.PublicIP) bool {
		changes := !ip.Static
		ip.Static = true
		return changes
	})
	if err != nil {
		return err
	}
	pools, err := m.eachInterface(nil)
	if err != nil {
		return err
	}
	before, err := m.ListLoadBalancers(ctx, subscription, group)
	if err != nil {
		return err
	}
	before = slices.DeleteFunc(before, func(b lb.LoadBalancer) bool { return b.SKU != lb.Basic })
	for _, b := range before {
		if err := m.DeleteLoadBalancer(ctx, b); err != nil {
			return err
		}
	}
	var made []lb.LoadBalancer
	for _, b := range before {
		next, err := m.PutLoadBalancer(ctx, lb.LoadBalancer{ID: b.ID, Location: b.Location, SKU: lb.Standard})
		if err != nil {
			return err
		}
		made = append(made, next)
	}
	err = m.eachIP(func(ip *lb.PublicIP) bool {
		ip.SKU = lb.Standard
		return true
	})
	if err != nil {
		return err
	}
	for n, b := range before {
		for _, fill := range []func(*lb.LoadBalancer){
			func(next *lb.LoadBalancer) {
				for _, f := range b.Frontends {
					f.Static = f.PublicIP == ""
					next.Frontends = append(next.Frontends, f)
				}
				for _, pool := range b.Pools {
					next.Pools = append(next.Pools, lb.Pool{ID: pool.ID})
				}
			},
			func(next *lb.LoadBalancer) { next.Probes = b.Probes },
			func(next *lb.LoadBalancer) { next.Rules = b.Rules },
		} {
			fill(&made[n])
			if made[n], err = m.PutLoadBalancer(ctx, made[n]); err != nil {
				return err
			}
		}
	}
	_, err = m.eachInterface(pools)
	return err
}

func (m manualMigration) eachIP(change func(*lb.PublicIP) bool) error {
	ips, err := m.ListPublicIPs(ctx, subscription, group)
	for _, ip := range ips {
		if err == nil && change(&ip) {
			_, err = m.PutPublicIP(ctx, ip)
		}
	}
	return err
}

// eachInterface puts all interfaces into the given pools and returns the previous ones.
func (m manualMigration) eachInterface(pools []string) (were []string, err error) {
	interfaces, err := m.machines.ListInterfaces(ctx, subscription, group)
	for _, i := range interfaces {
		were = i.IPConfigurations[0].Pools
		i.IPConfigurations = slices.Clone(i.IPConfigurations)
		i.IPConfigurations[0].Pools = pools
		if err == nil {
			_, err = m.machines.PutInterface(ctx, i)
		}
	}
	return were, err
}

// measureMigration measures a migration of many Services with 30 nodes.
func measureMigration(t *testing.T, latency armemu.Latency, configure func(*config.Config), byHand bool) (o outages) {
	t.Helper()
	runStage(t, Options{Settle: synctest.Wait, Latency: latency, Machines: true, NoOutboundPool: true, Configure: configure}, func(s *Stage) {
		failOn(s.addBasicOf("availability set", ofFigures, manyBasics()))
		s.Sleep(time.Minute)
		if byHand {
			p, err := s.person()
			failOn(err)
			failed := make(chan error, 1)
			go func() { failed <- p.runMigration() }()
			o, err = s.watchOutages(manyBasics(), 2*time.Hour)
			failOn(errors.Join(<-failed, err))
			s.addOutages(&o)
			return
		}
		s.Start()
		var err error
		o, err = s.watchOutages(manyBasics(), time.Hour)
		failOn(err)
		failOn(s.WaitInSync(time.Hour))
		s.addOutages(&o)
	})
	return o
}

// The documented duration of a migration of 50 Services with 30 nodes matches the emulator.
func TestFiguresOfAMigration(t *testing.T) {
	if testing.Short() {
		t.Skip("an hour of a cluster with 30 nodes, several times")
	}
	var table strings.Builder
	table.WriteString("| Latency | Who | Requests | of them writes | Over no machine for | Over fewer than all for | Done after |\n|---|---|---|---|---|---|---|\n")
	for _, latency := range []armemu.Latency{armemu.Quiet, armemu.Busy} {
		for _, user := range []struct {
			name      string
			byHand    bool
			configure func(*config.Config)
		}{
			{"Microsoft's order, one resource at a time", true, nil},
			{"Weir, pools of network interfaces", false, func(c *config.Config) { enableMigration(c); useInterfaces(c) }},
			{"Weir, pools of addresses", false, enableMigration},
		} {
			o := measureMigration(t, latency, user.configure, user.byHand)
			fmt.Fprintf(&table, "| %s | %s | %d | %d | %s | %s | %s |\n", latency, user.name, o.all, o.writes, formatRange(o.none), formatRange(o.fewer), o.took)
			for _, b := range manyBasics() {
				t.Logf("%s, %s: Service %s, %s, internal %t: over no machine for %s, over fewer than all for %s", latency, user.name, b.key, b.method, b.internal, o.none[b.key], o.fewer[b.key])
			}
		}
	}
	referencepage.ExpectSection(t, "../../docs/guide/basic-to-standard.md", "figures", table.String())
}
