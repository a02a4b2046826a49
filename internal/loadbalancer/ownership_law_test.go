// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/test/worlds"
)

// turn is one event; it changes the stage at once.
type turn struct {
	what  string
	waits time.Duration
	do    func(s *stage)
}

// troubles are faults of later Azure calls.
var troubles = []string{
	`rules: []`,
	`rules: [{match: {kind: put, path: "**/networkSecurityGroups/*", maxMatches: 2}, action: {status: 429, code: TooManyRequests, headers: {Retry-After: "300"}}}]`,
	`rules: [{match: {kind: put, path: "**/networkSecurityGroups/*", maxMatches: 3}, action: {status: 429, code: TooManyRequests}}]`,
	`rules: [{match: {kind: put, path: "**/loadBalancers/**", maxMatches: 2}, action: {bumpEtag: true}}]`,
	`rules: [{match: {kind: put, path: "**/loadBalancers/**", maxMatches: 1}, action: {drop: true, applied: true}}]`,
	`rules: [{match: {kind: put, path: "**/loadBalancers/**", maxMatches: 1}, action: {operation: {fail: {code: InternalServerError}}}}]`,
	`rules: [{match: {kind: put, path: "**/loadBalancers/*", maxMatches: 2}, action: {status: 429, code: TooManyRequests, headers: {Retry-After: "60"}}}]`,
}

var lawPools = []string{"kubernetes/kubernetes", "kubernetes/shop-a", "kubernetes/shop-b", "kubernetes-internal/kubernetes", "kubernetes-internal/shop-a"}

// lawSpecs are what Services want, in addition to their ports.
var lawSpecs = []string{"", ", local: yes", ", local: yes", `, local: yes, azure-load-balancer-internal: "true"`}

// sharingSpecs are those of Services that share addresses, internal and public, or have a public IP in another resource group.
var sharingSpecs = []string{
	"", ", local: yes", `, azure-load-balancer-internal: "true"`,
	`, local: yes, azure-load-balancer-internal: "true", azure-load-balancer-ipv4: 10.0.0.50, ranges: 192.0.2.0/24`,
	`, azure-load-balancer-internal: "true", azure-load-balancer-ipv4: 10.0.0.50, azure-disable-load-balancer-floating-ip: "true"`,
	", azure-pip-name: mine", ", local: yes, azure-pip-name: mine", ", local: yes, azure-load-balancer-resource-group: net",
	", azure-load-balancer-resource-group: net, families: IPv4 IPv6",
}

func drawTurn(t *rapid.T) turn { return drawTurnOf(t, lawSpecs, "80") }

// drawTurnOf draws a turn of shop/a with port 80 and shop/b with another one.
func drawTurnOf(t *rapid.T, specs []string, another string) turn {
	at := turn{waits: rapid.SampledFrom([]time.Duration{0, time.Second, 15 * time.Second, 45 * time.Second, 10 * time.Minute}).Draw(t, "waits")}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2:
		name := rapid.SampledFrom([]string{"shop/a", "shop/b"}).Draw(t, "name")
		spec, port := rapid.SampledFrom(specs).Draw(t, "spec"), "80"
		if name == "shop/b" {
			port = another
		}
		at.what = fmt.Sprintf("apply %s%s", name, spec)
		at.do = func(s *stage) {
			if s.leaving(name) {
				s.revive()
				s.settle(2 * time.Hour) // Kubernetes has one Service per name
			}
			if !s.leaving(name) {
				s.applyAll(fmt.Sprintf("%s: {ports: %s%s}", name, port, spec))
			}
		}
	case 3:
		name := rapid.SampledFrom([]string{"shop/a", "shop/b"}).Draw(t, "name")
		at.what, at.do = "delete "+name, func(s *stage) { s.remove(name) }
	case 4, 5:
		node, drains := rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), rapid.Bool().Draw(t, "drains")
		at.what, at.do = fmt.Sprintf("taint %s: %t", node, drains), func(s *stage) { s.taint(node, drains) }
	case 6:
		pool, ip := rapid.SampledFrom(lawPools).Draw(t, "pool"), rapid.SampledFrom([]string{"10.0.7.7", "10.0.7.8"}).Draw(t, "ip")
		change := joins
		if at.what = "join " + pool + " " + ip; rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
			at.what, change = "part "+pool+" "+ip, leaves
		}
		at.do = func(s *stage) {
			if s.tellable(pool) {
				s.others(pool, ip, change)
			}
		}
	case 7:
		at.what, at.do = "restart", func(s *stage) { s.othersLeave(); s.restart() }
	case 8:
		nth, after := rapid.IntRange(1, 8).Draw(t, "nth"), rapid.Bool().Draw(t, "after")
		at.what, at.do = fmt.Sprintf("kill at %d, after it %t", nth, after), func(s *stage) { s.arm([]killPoint{{nth, after}}) }
	default:
		faults := rapid.SampledFrom(troubles).Draw(t, "faults")
		at.what, at.do = faults, func(s *stage) { must(s.emu.SetFaults(faults)) }
	}
	return at
}

// leaving reports whether a Service is being deleted.
func (s *stage) leaving(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.services[name] != nil && s.services[name].deleted
}

// tellable reports whether Weir can distinguish its addresses in an existing pool: the BackendPool has a
// record, or the process knows the previous one.
func (s *stage) tellable(pool string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.emu.Get(network + "/loadBalancers/" + strings.Replace(pool, "/", "/backendAddressPools/", 1))
	return ok && (s.process.had[pool] || s.backends[pool] != nil && s.backends[pool].recorded.Adopted)
}

// othersLeave removes foreign members from pools without a record, which the next process would adopt.
func (s *stage) othersLeave() {
	s.stop()
	for _, pool := range lawPools {
		s.mu.Lock()
		b := s.backends[pool]
		recorded := b != nil && b.recorded.Adopted
		s.mu.Unlock()
		for _, ip := range []string{"10.0.7.7", "10.0.7.8"} {
			key := strings.ToLower(network+"/loadBalancers/"+strings.Replace(pool, "/", "/backendAddressPools/", 1)) + " " + ip
			if !recorded && s.theirs[key] {
				s.others(pool, ip, leaves)
			}
		}
	}
}

// revive starts a process if none runs.
func (s *stage) revive() {
	s.mu.Lock()
	dead := s.process.dead
	s.mu.Unlock()
	if dead {
		s.arm(nil)
		s.othersLeave()
		s.restart()
	}
}

// Whatever happens to Services while nodes drain, Azure throttles, responses get lost, processes are killed and
// Azure changes pools in load balancer writes: in the end each pool has exactly the desired and foreign
// members, no member is left Down by Weir, and deleted Services leave nothing.
func TestLawWhatWeirHasWrittenHasAnOwner(t *testing.T) { checkOwnership(t, drawTurn) }

// The same holds for Services that share addresses, change between internal and public ones, and have public IPs in another
// resource group, with rules of another client and searches for leftovers at any time.
func TestLawWhatIsSharedHasAnOwner(t *testing.T) {
	checkOwnership(t, func(t *rapid.T) turn {
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			return turn{what: "search", do: (*stage).deleteUnneeded}
		case 1:
			pool := rapid.SampledFrom([]string{"shop-a", "shop-b", "kubernetes"}).Draw(t, "pinned")
			return turn{what: "rule of others for " + pool, do: func(s *stage) { s.pin(pool) }}
		case 2:
			return turn{what: "rule of others goes", do: (*stage).unpin}
		}
		return drawTurnOf(t, sharingSpecs, "81")
	})
}

// pin adds a rule of another client, at a frontend of its own, to a pool of the public load balancer.
func (s *stage) pin(pool string) {
	raw, ok := s.emu.Get(network + "/loadBalancers/kubernetes")
	if !ok || strings.Contains(string(raw), "/frontendIPConfigurations/theirs") || !strings.Contains(string(raw), "/backendAddressPools/"+pool+`"`) {
		return
	}
	must(s.emu.SetFaults(""))
	s.put("publicIPAddresses/theirs", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
	s.add("kubernetes", strings.ReplaceAll(`
frontendIPConfigurations: [{name: theirs, properties: {publicIPAddress: {id: ~/publicIPAddresses/theirs}}}]
loadBalancingRules:
- name: theirs
  properties: {protocol: Tcp, frontendPort: 9000, backendPort: 9000, enableFloatingIP: true, frontendIPConfiguration: {id: +/frontendIPConfigurations/theirs}, backendAddressPool: {id: +/backendAddressPools/`+pool+`}}
`, "+", "~/loadBalancers/kubernetes"))
}

// unpin removes that rule; its frontend remains.
func (s *stage) unpin() {
	if raw, ok := s.emu.Get(network + "/loadBalancers/kubernetes"); ok && strings.Contains(string(raw), "/loadBalancingRules/theirs") {
		must(s.emu.SetFaults(""))
		s.take("kubernetes", "loadBalancingRules", "theirs")
	}
}

func checkOwnership(t *testing.T, draw func(*rapid.T) turn) {
	rapid.Check(t, func(rt *rapid.T) {
		azure := rapid.SampledFrom(slices.Sorted(maps.Keys(worlds.AllBehaviors()))).Draw(rt, "azure")
		known, invalid := rapid.Bool().Draw(rt, "known"), rapid.Bool().Draw(rt, "invalid")
		turns := rapid.SliceOfN(rapid.Custom(draw), 2, 12).Draw(rt, "turns")
		var failed error
		var output strings.Builder
		synctest.Test(t, func(*testing.T) {
			s := newStage(guarded)
			defer func() { s.close() }()
			must(s.emu.SetBehavior(worlds.AllBehaviors()[azure]))
			if known {
				s.knows = worlds.AllBehaviors()[azure]
			}
			keepsPools(s)
			s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
			s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
			if invalid {
				s.applyAll("shop/c: {ports: 80, azure-load-balancer-tcp-idle-timeout: never}") // it is on no load balancer
			}
			for _, at := range turns {
				at.do(s)
				s.settle(at.waits)
				fmt.Fprintf(&output, "--- %s\n%s", at.what, s.harvest(false))
			}
			must(s.emu.SetFaults(""))
			s.unpin() // it keeps a Service out of its pool
			s.arm(nil)
			s.revive()
			s.settle(2 * time.Hour)
			s.look()
			time.Sleep(11 * time.Minute) // one resync period
			s.settle(2 * time.Hour)
			output.WriteString("--- end\n" + s.harvest(false) + s.cloud().spell())
			if failed = s.owned(); failed == nil {
				failed = s.nobodyLeft()
			}
			if failed == nil { // what was retained for others is deleted after them
				s.allOthersLeave()
				s.searchDaily()
				output.WriteString("--- others left\n" + s.harvest(false) + s.cloud().spell() + "left pools: " + s.left.spell())
				failed = s.nothingLeft()
			}
		})
		if failed != nil {
			rt.Fatalf("%v\n%s", failed, output.String())
		}
	})
}

// allOthersLeave removes all foreign members.
func (s *stage) allOthersLeave() {
	for _, key := range slices.Sorted(maps.Keys(s.theirs)) {
		pool, ip, _ := strings.Cut(strings.TrimPrefix(key, strings.ToLower(network+"/loadBalancers/")), " ")
		s.others(strings.Replace(pool, "/backendaddresspools/", "/", 1), ip, leaves)
	}
}

// searchDaily searches for leftovers as the controller does: after a start, then each day, and every ten minutes
// what the last search found.
func (s *stage) searchDaily() {
	for range 2 {
		s.deleteUnneeded()
		s.settle(2 * time.Hour)
		for range 3 {
			time.Sleep(10 * time.Minute)
			s.deleteKnown()
			s.settle(2 * time.Hour)
		}
	}
}

// nothingLeft returns an error if Azure has parts of a deleted Service that nothing needs any more.
func (s *stage) nothingLeft() error {
	if err := s.nobodyLeft(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.cloud().balancers {
		if name := b.Tags[plan.TagRetained]; name != "" {
			return fmt.Errorf("frontend %s of %s stays for nothing", name, b.Name)
		}
		for _, p := range b.Properties.Pools {
			if name, own := strings.CutPrefix(p.Name, "shop-"); own && s.services["shop/"+name] == nil {
				return fmt.Errorf("pool %s of %s is of a Service that is gone", p.Name, b.Name)
			}
		}
	}
	return nil
}

// nobodyLeft returns an error if Azure still has parts of a deleted Service. The frontend that Azure requires while a
// load balancer has pools is none, nor is its public IP.
func (s *stage) nobodyLeft() error {
	s.mu.Lock()
	present := map[string]bool{}
	for _, r := range s.services {
		present[r.OwnerName()] = true
	}
	s.mu.Unlock()
	all := s.cloud()
	for _, b := range all.balancers {
		shared := map[string]bool{} // frontends of rules, which may be those of another Service
		for _, r := range b.Properties.Rules {
			shared[isLastLeaving(r.Properties.Frontend.ID)] = true
			if owner, _, _ := strings.Cut(r.Name, "-"); !present[owner] && owner != "theirs" {
				return fmt.Errorf("rule %s of %s is of a Service that is gone", r.Name, b.Name)
			}
		}
		for _, f := range b.Properties.Frontends {
			if owner, _, _ := strings.Cut(f.Name, "-"); !present[owner] && !shared[f.Name] && owner != "theirs" {
				if f.Name == b.Tags[plan.TagRetained] && len(b.Properties.Rules) == 0 && len(b.Properties.Pools) > 0 {
					present[owner] = true // its public IP
					continue
				}
				return fmt.Errorf("frontend %s of %s is of a Service that is gone", f.Name, b.Name)
			}
		}
	}
	for _, ip := range all.ips {
		owner, _, _ := strings.Cut(strings.TrimPrefix(ip.Name, clusterName+"-"), "-")
		if ip.Name != "mine" && ip.Name != "theirs" && !present[owner] {
			return fmt.Errorf("public IP %s is of a Service that is gone", ip.Name)
		}
	}
	return nil
}
