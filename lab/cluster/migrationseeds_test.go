// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/skumigration"
	"weir.dev/weir/lab/armemu"
)

// kills is the number of requests at which each migration's process dies, alternately before and
// after.
var kills = flag.Int("kills", 1, "how often each seed's migration is played with a death at another request; 0 is at each, before and after")

// basicCluster is a random cluster of Basic load balancers.
type basicCluster struct {
	seed     uint64
	kind     string // of its machines
	nodes    int
	services []basicService
	several  bool
	pools    func(*config.Config)
	byHand   int    // progress of a manual migration
	blocker  string // what blocks the migration; empty: nothing
}

func drawBasic(seed uint64) basicCluster {
	r := rand.New(rand.NewPCG(seed, 4))
	c := basicCluster{
		seed: seed, kind: machineKinds[r.IntN(len(machineKinds))], nodes: 1 + r.IntN(4), several: r.IntN(5) == 0,
		pools: []func(*config.Config){useAddresses, useInterfaces}[r.IntN(2)],
	}
	if c.several {
		c.kind, c.nodes = "availability set", 2+r.IntN(3) // half of its machines are behind each
	}
	which := r.IntN(3) // external, internal, both
	for n, key := range []string{"shop/web", "shop/api", "shop/db", "blog/web", "blog/db", "blog/cache"}[:1+r.IntN(6)] {
		b := basicService{key: key, internal: which == 1 || which == 2 && n%2 == 1, method: []string{"Dynamic", "Static"}[r.IntN(2)], dual: r.IntN(4) == 0, port: int32(80 + n)} //nolint:gosec // small
		if !b.internal && r.IntN(3) == 0 {
			b.brought, b.dual = "brought-"+parseKey(key).Namespace, false
		}
		if c.several {
			b.on = []string{clusterName, secondName}[n%2]
			b.brought = ""
		}
		c.services = append(c.services, b)
	}
	if r.IntN(2) == 0 && !c.several {
		c.byHand = r.IntN(6)
	}
	if r.IntN(8) == 0 {
		c.blocker = []string{"rule", "frontend", "public IP of a machine", "no security group"}[r.IntN(4)]
	}
	return c
}

func (c basicCluster) String() string {
	return fmt.Sprintf("seed %d: %s, %d nodes, %+v, several %t, by hand %d, kept by %q", c.seed, c.kind, c.nodes, c.services, c.several, c.byHand, c.blocker)
}

func (c basicCluster) options() Options {
	return Options{Seed: c.seed, Machines: true, NoOutboundPool: true, HideDeleted: c.seed%2 == 0, LatencyScale: latencyScale(c.seed), Configure: func(to *config.Config) {
		enableMigration(to)
		c.pools(to)
		if c.several {
			to.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: secondName}}
		}
	}}
}

// latencyScale makes deletions outlast a restart where GET hides them.
func latencyScale(seed uint64) float64 {
	if seed%2 == 0 {
		return 5
	}
	return 1
}

// build creates the cluster and the manual progress.
func (c basicCluster) build(s *Stage) error {
	nodes := nodesOfKind(c.kind, c.nodes)
	for _, n := range nodes {
		if err := s.AddNode(n); err != nil {
			return err
		}
	}
	pools, err := s.addBasicBalancers(c.services)
	if err != nil {
		return err
	}
	if c.several {
		for at, n := range nodes {
			on := "/loadBalancers/" + []string{clusterName, secondName}[at%2]
			foreign := slices.DeleteFunc(slices.Clone(pools), func(id any) bool { return !strings.Contains(id.(map[string]any)["id"].(string), on) })
			err = errors.Join(err, s.machinesBehind(c.kind, []int{n}, foreign))
		}
	} else {
		err = s.machinesBehind(c.kind, nodes, pools)
	}
	if err = errors.Join(err, c.addBlocker(s, nodes)); err != nil || c.blocker != "" {
		return err
	}
	return c.startByHand(s, nodes, pools)
}

// startByHand performs the first steps of a manual migration in the right order.
func (c basicCluster) startByHand(s *Stage, nodes []int, pools []any) error {
	seen, err := s.readAzure()
	if err != nil {
		return err
	}
	var ips []string
	for _, ip := range seen.addresses {
		ips = append(ips, network+"publicIPAddresses/"+ip.Name)
	}
	slices.Sort(ips)
	for n, id := range ips {
		if c.byHand > 2 || c.byHand > 0 && n%2 == 0 {
			if err := s.editResource(id, func(_, properties map[string]any) { properties["publicIPAllocationMethod"] = "Static" }); err != nil {
				return err
			}
		}
	}
	switch {
	case c.byHand > 2:
		err = s.machinesBehind(c.kind, nodes, nil)
	case c.byHand == 2 && len(nodes) > 1 && s.scaleSetName(nodes[0]) == "":
		err = s.setMachinePools(nil, nodes[:1])
	}
	for n, pool := range pools {
		if at, _, _ := strings.Cut(pool.(map[string]any)["id"].(string), "/backendAddressPools/"); c.byHand > 3 || c.byHand > 2 && n == 0 {
			err = errors.Join(err, s.deleteResource(at))
		}
	}
	if c.byHand < 5 || err != nil {
		return err
	}
	s.Sleep(time.Minute) // until they are deleted
	for n, id := range ips {
		if n%2 == 0 {
			if err := s.editResource(id, func(body, _ map[string]any) { body["sku"] = map[string]any{"name": "Standard"} }); err != nil {
				return err
			}
		}
	}
	return nil
}

// addBlocker creates what blocks a migration.
func (c basicCluster) addBlocker(s *Stage, nodes []int) error {
	at := network + "loadBalancers/" + c.services[0].loadBalancerKey()
	switch c.blocker {
	case "rule":
		return s.editResource(at, func(_, properties map[string]any) {
			like := properties["loadBalancingRules"].([]any)[0].(map[string]any)["properties"].(map[string]any)
			more := maps.Clone(like)
			more["frontendPort"], more["backendPort"] = 2222, 2222
			properties["loadBalancingRules"] = append(properties["loadBalancingRules"].([]any), map[string]any{"name": "ssh", "properties": more})
		})
	case "frontend":
		return s.editResource(at, func(_, properties map[string]any) {
			properties["frontendIPConfigurations"] = append(properties["frontendIPConfigurations"].([]any), map[string]any{"name": "vip", "properties": map[string]any{
				"subnet": idOf(vnetID + "/subnets/nodes"), "privateIPAllocationMethod": "Static", "privateIPAddress": "10.0.9.200",
			}})
		})
	case "no security group":
		return s.setSubnetGroup(nil)
	case "public IP of a machine":
		if s.scaleSetName(nodes[0]) != "" {
			return nil // its addresses are not read
		}
		id := network + "publicIPAddresses/machine"
		if err := s.putResource(id, map[string]any{"location": region, "sku": map[string]any{"name": "Basic"}, "properties": map[string]any{"publicIPAllocationMethod": "Static", "ipAddress": "198.18.9.200"}}); err != nil {
			return err
		}
		return s.editResource(s.nicOf(nodes[0]), func(_, properties map[string]any) {
			properties["ipConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["publicIPAddress"] = idOf(id)
		})
	}
	return nil
}

// migrate runs a migration with a process that dies at an Azure request, before it arrives or after
// it was answered; zero is never. It returns the requests up to the end.
func (c basicCluster) migrate(s *Stage, death int, after bool) []armemu.Call {
	s.Sleep(time.Minute)
	before, err := s.publicIPs()
	failOn(err)
	if r := rand.New(rand.NewPCG(c.seed, uint64(death))); death > 0 && r.IntN(2) == 0 { //nolint:gosec // not negative
		failOn(s.addRandomFaults(r))
	}
	first := len(s.emulator.Calls())
	s.Start()
	if s.KillAtRequest(death, after); death > 0 {
		s.Sleep(2 * time.Minute)
	}
	for n := 0; n < 400 && s.isUnfinished(); n++ {
		s.Sleep(5 * time.Second)
	}
	calls := s.emulator.Calls()[first:]
	s.EndFaults()
	failOn(s.WaitInSync(40 * time.Minute))
	failOn(s.migratedAll(c.services))
	failOn(s.keptAddresses(before))
	return calls
}

func (s *Stage) isUnfinished() bool {
	j, err := s.migrationJournal()
	failOn(err)
	return !j.Done
}

// publicIPs returns the addresses of all public IPs, by id.
func (s *Stage) publicIPs() (map[string]string, error) {
	c, err := s.readAzure()
	ips := map[string]string{}
	for id, ip := range c.addresses {
		ips[id] = ip.Properties.IP
	}
	return ips, err
}

// keptAddresses returns public IPs that lost their address, were deleted, or are not Static.
func (s *Stage) keptAddresses(before map[string]string) error {
	if got, err := s.publicIPs(); err != nil || !maps.Equal(got, before) {
		return errors.Join(err, fmt.Errorf("public IPs were %v, and are %v", before, got))
	}
	for _, call := range s.emulator.Calls() {
		if call.Method == http.MethodDelete && strings.Contains(strings.ToLower(call.Path), "/publicipaddresses/") {
			return fmt.Errorf("sent is %s %s", call.Method, call.Path)
		}
	}
	if strings.Contains(string(s.emulator.Snapshot()), `"publicIPAllocationMethod":"Dynamic"`) {
		return errors.New("a public IP is Dynamic")
	}
	return nil
}

// For random clusters, deaths and Azure faults: all addresses are kept, no public IP is deleted,
// and nothing is left to plan. A migration that the plan reports as blocked does not start; any
// other completes.
func TestSeedsOfMigrations(t *testing.T) {
	t.Parallel()
	died, plays, stopped, count := map[string]int{}, 0, 0, max(*seeds/5, 1)
	if testing.Short() {
		count = min(count, 2)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(count); seed++ { //nolint:gosec // small
		if *stop && t.Failed() {
			break
		}
		c := drawBasic(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			calls, state := c.runWhole(t)
			if plays++; state == skumigration.PlanBlocked {
				stopped++
				return
			}
			times := *kills
			if times == 0 {
				times = 2 * len(calls)
			}
			for n := range times {
				at := 1 + (n*len(calls)/times+int(seed)*7)%len(calls) //nolint:gosec // small
				after := n%2 == 1
				if *kills == 0 {
					at = 1 + n/2
				}
				runStage(t, c.options(), func(s *Stage) {
					failOn(c.build(s))
					c.migrate(s, at, after)
				})
				died[fmt.Sprint(calls[at-1].Kind)]++
				if plays++; t.Failed() {
					t.Fatalf("%s, dies at request %d (%s %s), after it %t", c, at, calls[at-1].Method, calls[at-1].Path, after)
				}
			}
		})
	}
	t.Logf("%d plays, deaths at %v; %d clusters whose migration something kept from starting", plays, died, stopped)
}

// runWhole runs a migration without faults and compares it with the plans before and after.
func (c basicCluster) runWhole(t *testing.T) (calls []armemu.Call, state skumigration.PlanState) {
	t.Helper()
	var before, after planned
	runStage(t, c.options(), func(s *Stage) {
		failOn(c.build(s))
		s.Sleep(time.Minute)
		before = s.planned()
		if c.blocker == "" || c.blocker != "" && !strings.Contains(string(s.emulator.Snapshot()), c.blockerText()) {
			calls = c.migrate(s, 0, false)
			after = s.planned()
			return
		}
		before, err := s.preservedState()
		failOn(err)
		s.Start()
		s.Sleep(20 * time.Minute)
		failOn(s.diffPreserved(before))
	})
	if t.Failed() {
		t.Fatal(c)
	}
	plan := before.migration(t, c)
	basic := strings.Contains(string(before.azure), `"Basic"`)
	switch state = plan.State; {
	case calls == nil && state != skumigration.PlanBlocked, calls != nil && state != skumigration.PlanReady && (basic || state != skumigration.PlanEmpty):
		t.Fatalf("%s: the plan is %s:\n%s", c, state, plan.Text())
	case calls == nil:
		return nil, state
	}
	if plan := after.migration(t, c); plan.State != skumigration.PlanEmpty {
		t.Fatalf("%s: what is migrated is to be migrated:\n%s", c, plan.Text())
	}
	if plan := after.all(t, c); plan.Changes != 0 || plan.PoolWrites != 0 {
		t.Fatalf("%s: what is migrated is to be changed:\n%s", c, plan.FormatText(false))
	}
	return calls, state
}

// blockerText is Azure's text that is present if something blocks the migration.
func (c basicCluster) blockerText() string {
	return map[string]string{"rule": `"ssh"`, "frontend": `"vip"`, "public IP of a machine": "198.18.9.200", "no security group": `"198.18.9.`}[c.blocker]
}
