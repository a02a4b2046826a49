// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// Changes while no process runs are closed: the status addresses and the node addresses.
func TestAccessChangedWhileStoppedIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(set *loadbalancer.Settings) {
			set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
		})
		defer func() { s.close() }()
		s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
		s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		s.applyAll(`
shop/goes: {ports: 80}
shop/moves: {ports: 81}
shop/direct: {ports: 82, azure-disable-load-balancer-floating-ip: "true"}`)
		s.settle(time.Hour)
		s.stop()
		s.remove("shop/goes")
		s.applyAll(`
shop/moves: {ports: 81, azure-pip-name: mine}
shop/direct: {ports: 82, azure-load-balancer-internal: "true"}`)
		s.launch()
		s.kickAll()
		s.settle(time.Hour)
		_, group, _ := strings.Cut(s.cloud().spell(), "networkSecurityGroups/nsg\n")
		if want := "Allow Tcp from Internet to 198.18.0.1 at 81\n"; !strings.HasSuffix(group, want) || strings.Count(group, "\n") != 1 {
			t.Errorf("left\n%s\nwant\n%s", group, want)
		}
	})
}

// A Service without status addresses leaves: its type changed while no process ran, or the last process died
// before the status update. Its access is closed; foreign rules and other Services' addresses stay.
func TestUnpublishedAddressIsClosed(t *testing.T) {
	for about, change := range map[string]string{
		"a public address":        `{ports: 80}`,
		"one of both families":    `{ports: 80, families: IPv4 IPv6}`,
		"one in another group":    `{ports: 80, azure-load-balancer-resource-group: net}`,
		"one that people made":    `{ports: 80, azure-pip-name: mine}`,
		"an internal Service's":   `{ports: 80, azure-load-balancer-internal: "true", ranges: 192.0.2.0/24}`,
		"that of a moved Service": "moves",
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(func(set *loadbalancer.Settings) {
					set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
				})
				defer func() { s.close() }()
				const theirs = `{name: %s, properties: {priority: %d, direction: Inbound, access: Allow, protocol: Tcp, sourcePortRange: "*", sourceAddressPrefix: Internet, destinationPortRange: "22", destinationAddressPrefix: 203.0.113.9}}`
				s.put("networkSecurityGroups/nsg", fmt.Sprintf(`{location: eastus, properties: {securityRules: [`+theirs+`, `+theirs+`]}}`, "ssh", 400, "k8s-azure-lb_allow_IPv4_of-another-cluster", 700))
				s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
				s.applyAll("shop/stays: {ports: 80}")
				s.settle(time.Hour)
				before := secured(s)
				moves := change == "moves"
				if moves {
					change = `{ports: 80}`
				}
				s.applyAll("shop/goes: " + change)
				s.settle(time.Hour)
				s.stop()
				s.services["shop/goes"].status = nil
				if !moves {
					s.services["shop/goes"].deleted = true
				}
				s.launch()
				if moves {
					s.applyAll(`shop/goes: {ports: 80, azure-load-balancer-internal: "true"}`)
				}
				s.kickAll()
				s.settle(time.Hour)
				if after := secured(s); after != before {
					t.Errorf("left\n%s\nwant\n%s", after, before)
				}
			})
		})
	}
}

func secured(s *stage) string {
	_, group, _ := strings.Cut(s.cloud().spell(), "networkSecurityGroups/nsg\n")
	return group
}

// A node leaves while a new process does not know all Services. The rules stay until it does, then the node's
// address is closed.
func TestANodeThatLeftIsClosedOnceItsServicesAreKnown(t *testing.T) {
	for about, writesBefore := range map[string]bool{"before the first write": false, "after a write": true} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(func(set *loadbalancer.Settings) {
					set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
				})
				defer func() { s.close() }()
				s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
				stays, leaves := netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.0.5")
				has := func(nodes ...netip.Addr) {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.nodes = nodes
				}
				rulesAre := func(when, at string) {
					t.Helper()
					for _, line := range strings.Split(secured(s), "\n") {
						if strings.Contains(line, "10.0.0.") && !strings.Contains(line, "to "+at+" at") {
							t.Errorf("%s: %s, want %s", when, line, at)
						}
					}
				}
				has(stays, leaves)
				s.applyAll("shop/direct: {ports: 82, azure-disable-load-balancer-floating-ip: \"true\"}\nshop/web: {ports: 80}")
				s.settle(time.Hour)
				rulesAre("at first", "10.0.0.4,10.0.0.5")
				s.stop()
				s.launch()
				synctest.Wait()
				for _, ports := range []string{"80 81", "80 443"} {
					if writesBefore {
						s.applyAll("shop/web: {ports: " + ports + "}")
						s.settle(time.Hour)
					}
					has(stays)
				}
				rulesAre("while nothing is known", "10.0.0.4,10.0.0.5")
				s.process.kick("shop/direct")
				s.settle(time.Hour)
				rulesAre("once it is known", "10.0.0.4")
				if !strings.Contains(secured(s), "10.0.0.4") {
					t.Errorf("nobody is let in: %s", secured(s))
				}
			})
		})
	}
}

// Restrictions made while no process runs are enforced by the next one, even if nothing else is valid or can be
// written, the status has no address, and a Service sharing the address is invalid.
func TestAccessRestrictedWhileStoppedIsClosed(t *testing.T) {
	for about, restricted := range map[string]string{
		"invalid":             `{ports: 81, ranges: 192.0.2.0/24, azure-load-balancer-tcp-idle-timeout: 3}`,
		"rejected":            `{ports: 81, ranges: 192.0.2.0/24}`,
		"unreadable":          `{ports: 81, ranges: 192.0.2.0/24 any, azure-deny-all-except-load-balancer-source-ranges: perhaps}`,
		"and goes, and comes": `{ports: 80, ranges: 192.0.2.0/24, local: yes}`,
	} {
		for _, shows := range []bool{true, false} {
			t.Run(fmt.Sprint(about, ", status ", shows), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStage(func(set *loadbalancer.Settings) {
						set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
					})
					defer func() { s.close() }()
					s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
					for _, text := range []string{"shop/web: {ports: 80}", "shop/beside: {ports: 443, azure-pip-name: kubernetes-a001}", "shop/direct: {ports: 82, azure-disable-load-balancer-floating-ip: \"true\"}"} {
						s.applyAll(text)
						s.settle(time.Hour)
					}
					s.stop()
					if !shows {
						s.services["shop/web"].status = nil
					}
					must(s.emu.SetFaults("rules:\n- {match: {method: PUT, path: \"" + network + "/loadBalancers/*\"}, action: {status: 429, code: TooManyRequests, headers: {Retry-After: \"600\"}}}\n"))
					s.launch()
					s.applyAll("shop/web: " + restricted)
					s.applyAll("shop/beside: {ports: 443, azure-pip-name: kubernetes-a001, azure-load-balancer-tcp-idle-timeout: 3}")
					s.applyAll("shop/direct: {ports: 83, azure-disable-load-balancer-floating-ip: \"true\", azure-load-balancer-internal: \"true\"}")
					s.settle(20 * time.Second)
					denied := map[string]string{"unreadable": "  4096 Deny Tcp from * to 198.18.0.1 at 80\n"}[about] // at its own ports
					want := "  501 Allow Tcp from Internet to 198.18.0.1 at 443\n" + denied + "  500 Allow Tcp from 192.0.2.0/24 to 198.18.0.1 at 80\n"
					if got := secured(s); got != want {
						t.Errorf("the group has\n%s\nwant\n%s", got, want)
					}
					if about == "and goes, and comes" {
						must(s.emu.SetFaults(""))
						s.applyAll("shop/web: {ports: 80}\nshop/beside: {ports: 443, azure-pip-name: kubernetes-a001}")
						s.settle(time.Hour)
						if got := secured(s); strings.Count(got, "Allow Tcp from Internet to 198.18.0.1 at") != 2 || strings.Contains(got, "192.0.2.0") {
							t.Errorf("once the restriction is gone the group has\n%s", got)
						}
					}
				})
			})
		}
	}
}

// A Service without floating IP leaves its own pool for that of all nodes, which has nodes of its load balancer only. The
// other nodes are admitted until no rule has the old pool, so while the new one cannot be filled.
func TestNodesOfAnOwnPoolAreAdmittedUntilNoRuleHasIt(t *testing.T) {
	for about, change := range map[string]func(s *stage){
		"by azure.json": func(s *stage) {
			s.stop()
			s.settings.LocalPools = service.AllNodes
			s.launch()
			s.process.lookAtPools()
			s.kickAll()
		},
		"by its policy": func(s *stage) {
			s.applyAll(`shop/a: {ports: 80, azure-disable-load-balancer-floating-ip: "true"}`)
		},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(guarded)
				defer func() { s.close() }()
				keepsPools(s)
				s.placed = s.nodes[1:2]
				s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
				s.applyAll(`shop/a: {ports: 80, local: yes, azure-disable-load-balancer-floating-ip: "true"}`)
				s.settle(time.Hour)
				state := func() (nodes string) {
					for line := range strings.Lines(s.cloud().spell()) {
						if strings.HasPrefix(line, "  rule ") || strings.Contains(line, " Allow ") {
							nodes += strings.Split(line, " probe ")[0] + "\n"
						}
					}
					return nodes
				}
				before := state()
				if !strings.Contains(before, " to shop-a:") || !strings.Contains(before, "10.0.9.1,10.0.9.2") {
					t.Fatalf("it is to have its own pool, and all nodes:\n%s", before)
				}
				must(s.emu.SetFaults(`rules: [{match: {kind: put, path: "**/backendAddressPools/*"}, action: {status: 500, code: InternalServerError}}]`))
				change(s)
				s.settle(10 * time.Minute)
				if got := state(); got != before {
					t.Errorf("while the pool of all nodes is empty:\n%swant\n%s", got, before)
				}
				must(s.emu.SetFaults(""))
				s.settle(2 * time.Hour)
				s.look()
				s.settle(2 * time.Hour)
				if got := state(); !strings.Contains(got, " to kubernetes:") || strings.Contains(got, "10.0.9.1") || !strings.Contains(got, "10.0.9.2") {
					t.Errorf("in the end:\n%s", got)
				}
			})
		})
	}
}
