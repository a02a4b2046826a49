// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

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

func drawTurn(t *rapid.T) turn {
	at := turn{waits: rapid.SampledFrom([]time.Duration{0, time.Second, 15 * time.Second, 45 * time.Second, 10 * time.Minute}).Draw(t, "waits")}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2:
		name := rapid.SampledFrom([]string{"shop/a", "shop/b"}).Draw(t, "name")
		spec := rapid.SampledFrom([]string{"", ", local: yes", ", local: yes", `, local: yes, azure-load-balancer-internal: "true"`}).Draw(t, "spec")
		at.what = fmt.Sprintf("apply %s%s", name, spec)
		at.do = func(s *stage) {
			if s.leaving(name) {
				s.revive()
				s.settle(2 * time.Hour) // Kubernetes has one Service per name
			}
			if !s.leaving(name) {
				s.applyAll(fmt.Sprintf("%s: {ports: 80%s}", name, spec))
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
	_, there := s.emu.Get(network + "/loadBalancers/" + strings.Replace(pool, "/", "/backendAddressPools/", 1))
	return there && (s.process.had[pool] || s.backends[pool] != nil && s.backends[pool].recorded.Managed)
}

// othersLeave removes foreign members from pools without a record, which the next process would adopt.
func (s *stage) othersLeave() {
	s.stop()
	for _, pool := range lawPools {
		s.mu.Lock()
		b := s.backends[pool]
		recorded := b != nil && b.recorded.Managed
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
func TestLawWhatWeirHasWrittenHasAnOwner(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		azure := rapid.SampledFrom(slices.Sorted(maps.Keys(worlds.AllBehaviors()))).Draw(rt, "azure")
		known := rapid.Bool().Draw(rt, "known")
		turns := rapid.SliceOfN(rapid.Custom(drawTurn), 2, 12).Draw(rt, "turns")
		var failed error
		var said strings.Builder
		synctest.Test(t, func(*testing.T) {
			s := newStage(guarded)
			defer func() { s.close() }()
			must(s.emu.SetBehavior(worlds.AllBehaviors()[azure]))
			if known {
				s.knows = worlds.AllBehaviors()[azure]
			}
			keepsPools(s)
			s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
			for _, at := range turns {
				at.do(s)
				s.settle(at.waits)
				fmt.Fprintf(&said, "--- %s\n%s", at.what, s.harvest(false))
			}
			must(s.emu.SetFaults(""))
			s.arm(nil)
			s.revive()
			s.settle(2 * time.Hour)
			s.look()
			time.Sleep(11 * time.Minute) // one resync period
			s.settle(2 * time.Hour)
			said.WriteString("--- end\n" + s.harvest(false) + s.cloud().spell())
			if failed = s.owned(); failed == nil {
				failed = s.nobodyLeft()
			}
		})
		if failed != nil {
			rt.Fatalf("%v\n%s", failed, said.String())
		}
	})
}

// nobodyLeft returns an error if Azure still has parts of a deleted Service.
func (s *stage) nobodyLeft() error {
	s.mu.Lock()
	there := map[string]bool{}
	for _, r := range s.services {
		there[r.OwnerName()] = true
	}
	s.mu.Unlock()
	all := s.cloud()
	for _, b := range all.balancers {
		for _, r := range b.Properties.Rules {
			if owner, _, _ := strings.Cut(r.Name, "-"); !there[owner] {
				return fmt.Errorf("rule %s of %s is of a Service that is gone", r.Name, b.Name)
			}
		}
		for _, f := range b.Properties.Frontends {
			if owner, _, _ := strings.Cut(f.Name, "-"); !there[owner] {
				return fmt.Errorf("frontend %s of %s is of a Service that is gone", f.Name, b.Name)
			}
		}
	}
	for _, ip := range all.ips {
		if !there[strings.TrimPrefix(ip.Name, clusterName+"-")] {
			return fmt.Errorf("public IP %s is of a Service that is gone", ip.Name)
		}
	}
	return nil
}
