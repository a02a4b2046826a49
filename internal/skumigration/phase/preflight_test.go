// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

var (
	front = lb.Frontend{Name: "a1", PublicIP: resourceID(lb.TypePublicIP, "ip").String()}
	pool  = lb.Pool{ID: lb.PoolID{Name: "kubernetes"}, NIC: true, Addresses: []lb.Address{{Interface: "x"}}}
)

// small is a load balancer with one Service and one machine.
func small() (phase.Snapshot, []phase.Service) {
	inPool := lb.InterfaceConfiguration{Name: "nic", SecurityGroup: "/nodes", IPConfigurations: []lb.IPConfiguration{
		{Name: "ip", Family: lb.IPv4, Primary: true, Subnet: network, Pools: []string{balancerID("kubernetes").String() + "/backendAddressPools/kubernetes"}},
	}}
	return phase.Snapshot{
			LoadBalancers: []lb.LoadBalancer{{
				ID: balancerID("kubernetes"), Etag: "1", SKU: lb.Basic, Frontends: []lb.Frontend{front}, Pools: []lb.Pool{pool},
				Rules: []lb.Rule{{Name: "a1-TCP-80", Frontend: "a1"}}, Pinned: map[string]bool{},
			}},
			PublicIPs: []lb.PublicIP{{
				ID: resourceID(lb.TypePublicIP, "ip"), Etag: "1", Address: netip.MustParseAddr("198.18.0.1"), SKU: lb.Basic, Family: lb.IPv4,
				UsedBy: balancerID("kubernetes").String() + "/frontendIPConfigurations/a1",
			}},
			Interfaces: []lb.NetworkInterface{{ID: resourceID(lb.TypeNetworkInterface, "n1"), Etag: "1", InterfaceConfiguration: inPool}},
			ScaleSets:  []phase.ScaleSet{{ScaleSet: lb.ScaleSet{ID: resourceID(lb.TypeScaleSet, "blue"), Etag: "1", Uniform: true, Interfaces: []lb.InterfaceConfiguration{inPool}}}},
		}, []phase.Service{{
			Name: "ns/web", Owner: "a1", LoadBalancer: balancerID("kubernetes"), Addresses: []netip.Addr{netip.MustParseAddr("198.18.0.1")},
			Frontends: []lb.Frontend{{Name: "a1", Family: lb.IPv4, PublicIP: front.PublicIP}},
		}}
}

func TestPreflightBlockers(t *testing.T) {
	other := balancerID("other")
	for _, tt := range []struct {
		about    string
		changed  func(*phase.Snapshot, *phase.Service, *phase.Options)
		reason   string // of a finding other than the outbound warning; empty for none
		stops    bool
		wantText string
	}{
		{"nothing", func(*phase.Snapshot, *phase.Service, *phase.Options) {}, "", false, ""},
		{"somebody's rule", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Rules[0].Name = "ssh"
		}, phase.ReasonForeignRule, true, "rule ssh"},
		{"somebody's frontend", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Frontends[0].Name = "vip"
		}, phase.ReasonForeignFrontend, true, "frontend vip"},
		{"a NAT rule", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Pinned["a1"] = true
		}, phase.ReasonNATRule, true, "frontend a1"},
		{"a NAT rule of a pool", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Pinned["kubernetes"] = true
		}, phase.ReasonNATRule, true, "pool kubernetes"},
		{"somebody's pool", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Pools[0].ID.Name = "vms"
		}, phase.ReasonForeignRule, true, "pool vms"},
		{"a public IP that cannot be read", func(s *phase.Snapshot, w *phase.Service, _ *phase.Options) { s.PublicIPs, w.Frontends = nil, nil }, phase.ReasonPublicIPUnknown, true, "frontend a1"},
		{"a public IP that somebody brought", func(_ *phase.Snapshot, _ *phase.Service, t *phase.Options) {
			t.IsManaged = func(lb.PublicIP) bool { return false }
		}, phase.ReasonUserPublicIP, true, "public IP ip"},
		{"the same, and it may be changed", func(_ *phase.Snapshot, _ *phase.Service, t *phase.Options) {
			t.IsManaged, t.UpgradeUserPublicIPs = func(lb.PublicIP) bool { return false }, true
		}, "", false, ""},
		{"a machine behind another Basic load balancer", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.Others = []lb.LoadBalancer{{ID: other, SKU: lb.Basic}}
			s.Interfaces[0].IPConfigurations[0].Pools = append(s.Interfaces[0].IPConfigurations[0].Pools, other.String()+"/backendAddressPools/p")
		}, phase.ReasonOtherLoadBalancer, true, "network interface n1"},
		{"a machine with a Basic public IP", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.PublicIPs = append(s.PublicIPs, lb.PublicIP{ID: resourceID(lb.TypePublicIP, "own"), SKU: lb.Basic, UsedBy: resourceID(lb.TypeNetworkInterface, "N1").String() + "/ipConfigurations/ip"})
		}, phase.ReasonNodePublicIP, true, "public IP own of network interface N1"},
		{"a scale set with another address in the pool", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			ips := s.ScaleSets[0].Interfaces[0].IPConfigurations
			second := ips[0]
			second.Name, second.Primary = "pods", false
			s.ScaleSets[0].Interfaces = []lb.InterfaceConfiguration{{Name: "nic", SecurityGroup: "/nodes", IPConfigurations: append(ips[:1:1], second)}}
		}, phase.ReasonSecondaryAddress, true, "IP configuration pods"},
		{"an instance with another address in the pool", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			ips := s.ScaleSets[0].Interfaces[0].IPConfigurations
			first, second := ips[0], ips[0]
			second.Name, second.Primary, first.Pools = "pods", false, nil
			s.ScaleSets[0].Instances = []lb.Instance{{ID: "7", Interfaces: []lb.InterfaceConfiguration{{Name: "nic", SecurityGroup: "/nodes", IPConfigurations: []lb.IPConfiguration{first, second}}}}}
		}, phase.ReasonSecondaryAddress, true, "IP configuration pods of instance 7 of scale set"},
		{"a rule that is named after another controller's Service", func(s *phase.Snapshot, _ *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Rules[0].Name = "a2222222222222222222222222222222-TCP-80"
		}, phase.ReasonForeignRule, true, "rule a2222222222222222222222222222222-TCP-80"},
		{"a frontend of a Service that is gone, which another shares", func(s *phase.Snapshot, w *phase.Service, _ *phase.Options) {
			s.LoadBalancers[0].Frontends[0].Name, s.LoadBalancers[0].Rules[0].Frontend, w.Frontends[0].Name = "a9", "A9", "a9"
		}, "", false, ""},
		{"a Service that is going", func(_ *phase.Snapshot, w *phase.Service, _ *phase.Options) { w.Addresses, w.Skip = nil, true }, "", false, ""},
		{"nobody writes a security group", func(_ *phase.Snapshot, _ *phase.Service, t *phase.Options) { t.SecurityGroup = "" }, phase.ReasonNoSecurityRules, false, "securityGroupName"},
		{"a Service without an address", func(_ *phase.Snapshot, w *phase.Service, _ *phase.Options) { w.Addresses = nil }, phase.ReasonNoAddress, false, "ns/web"},
		{"a Service whose address is gone", func(_ *phase.Snapshot, w *phase.Service, _ *phase.Options) {
			w.Addresses = []netip.Addr{netip.MustParseAddr("198.18.9.9")}
		}, phase.ReasonAddressLost, false, "198.18.9.9"},
	} {
		seen, services := small()
		terms := terms()
		tt.changed(&seen, &services[0], &terms)
		found, way := "", false
		for _, f := range phase.RunPreflight(phase.BuildJournal(phase.Journal{}, seen, services, "eastus"), seen, services, terms) {
			if f.Reason == phase.ReasonNoOutbound {
				way = strings.HasPrefix(f.Message, "network interface n1, scale set ") && !f.IsBlocker || tt.wantText == "pool vms" // the models are in another pool
				continue
			}
			found += f.Reason + " "
			if f.Reason != tt.reason || f.IsBlocker != tt.stops || !strings.Contains(f.Message, tt.wantText) {
				t.Errorf("%s: %s, stops %t: %s", tt.about, f.Reason, f.IsBlocker, f.Message)
			}
		}
		if !way || (found == "") != (tt.reason == "") {
			t.Errorf("%s: found %q, and the way out %t", tt.about, found, way)
		}
	}
}

// Internal load balancers give no outbound access either, and at most twenty machines are named.
func TestServicesLosingOutboundAccess(t *testing.T) {
	seen, services := small()
	seen.LoadBalancers[0].Frontends[0] = lb.Frontend{Name: "a1", Subnet: network, PrivateIP: netip.MustParseAddr("10.0.0.9")}
	for n := range 30 {
		more := seen.Interfaces[0]
		more.ID.Name = fmt.Sprintf("n%02d", n)
		seen.Interfaces = append(seen.Interfaces, more)
	}
	output := ""
	for _, f := range phase.RunPreflight(phase.Journal{}, seen, services, terms()) {
		if f.Reason == phase.ReasonNoOutbound {
			output += f.Message
		}
	}
	if !strings.HasPrefix(output, "network interface n00, ") || strings.Count(output, "network interface") != 20 || !strings.Contains(output, "n18 and 12 more: ") {
		t.Error(output)
	}
}

// A frontend added after the journal was recorded is not deleted with the load balancer, nor one
// with a Dynamic or unreadable public IP.
func TestNothingGoesThatIsNotOnRecord(t *testing.T) {
	for _, tt := range []struct {
		about    string
		changed  func(*phase.Snapshot)
		wantText string
	}{
		{"another public IP", func(s *phase.Snapshot) {
			ip := s.PublicIPs[0]
			ip.ID.Name = "late"
			s.PublicIPs = append(s.PublicIPs, ip)
			s.LoadBalancers[0].Frontends = append(s.LoadBalancers[0].Frontends, lb.Frontend{Name: "a2", PublicIP: ip.ID.String()})
		}, "a public IP that is not on record: late"},
		{"a private address", func(s *phase.Snapshot) {
			s.LoadBalancers[0].Frontends = append(s.LoadBalancers[0].Frontends, lb.Frontend{Name: "a2", Subnet: network, PrivateIP: netip.MustParseAddr("10.0.0.4")})
		}, "an address that is not on record"},
		{"a public IP that nobody can read any more", func(s *phase.Snapshot) { s.PublicIPs = nil }, "cannot be read"},
	} {
		seen, services := small()
		seen.PublicIPs[0].Static = true // with a machine that would leave for nothing
		j := phase.BuildJournal(phase.Journal{}, seen, services, "eastus")
		tt.changed(&seen)
		steps := phase.NextSteps(j, seen)
		if steps.Phase != phase.PhaseDetach || len(steps.Interfaces)+len(steps.ScaleSets) > 0 || len(steps.Delete) > 0 || len(steps.StopReasons) != 1 || !strings.Contains(steps.StopReasons[0], tt.wantText) {
			t.Errorf("%s: %s deletes %d, and stops %q", tt.about, steps.Phase, len(steps.Delete), steps.StopReasons)
		}
	}
}

// Resources that Azure is updating are waited for.
func TestAwaitedResources(t *testing.T) {
	for wantText, changed := range map[string]func(*phase.Snapshot){
		"public IP ip is Updating":         func(s *phase.Snapshot) { s.PublicIPs[0].Provisioning = lb.Updating },
		"network interface n1 is Updating": func(s *phase.Snapshot) { s.Interfaces[0].Provisioning = lb.Updating },
		"pool kubernetes of load balancer": func(s *phase.Snapshot) { s.Interfaces, s.ScaleSets = nil, nil },
		"load balancer kubernetes is Updating": func(s *phase.Snapshot) {
			s.LoadBalancers[0].Provisioning, s.LoadBalancers[0].Pools = lb.Updating, nil
		},
		"scale set blue is Updating": func(s *phase.Snapshot) { s.ScaleSets[0].Provisioning = lb.Updating },
		"instance 0 of scale set blue is Creating": func(s *phase.Snapshot) {
			set := &s.ScaleSets[0]
			set.Instances = []lb.Instance{{ScaleSet: set.ID, ID: "0", Provisioning: "Creating", Interfaces: set.Interfaces}}
			set.Interfaces = []lb.InterfaceConfiguration{{Name: "nic", IPConfigurations: []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true}}}}
		},
	} {
		seen, services := small()
		seen.PublicIPs[0].Static = true
		changed(&seen)
		steps := phase.NextSteps(phase.BuildJournal(phase.Journal{}, seen, services, "eastus"), seen)
		if len(steps.WaitReasons) != 1 || !strings.HasPrefix(steps.WaitReasons[0], wantText) || len(steps.Delete) > 0 {
			t.Errorf("%s: it waits for %q", wantText, steps.WaitReasons)
		}
	}
}

// A moved address is reported at the end and blocks nothing before.
func TestMisplacedResources(t *testing.T) {
	for wantText, changed := range map[string]func(*phase.Snapshot){
		"the public IP does not exist":                 func(s *phase.Snapshot) { s.PublicIPs = nil },
		"the public IP has the address 198.18.0.2 now": func(s *phase.Snapshot) { s.PublicIPs[0].Address = netip.MustParseAddr("198.18.0.2") },
		"the public IP is in use by /somebody":         func(s *phase.Snapshot) { s.PublicIPs[0].UsedBy, s.LoadBalancers[0].Frontends = "/somebody", nil },
		"no frontend of the load balancer has it":      func(s *phase.Snapshot) { s.LoadBalancers[1].Frontends[0].PrivateIP = netip.MustParseAddr("10.0.0.5") },
		"nothing has the public IP":                    func(s *phase.Snapshot) { s.PublicIPs[0].UsedBy = "" },
		"":                                             func(*phase.Snapshot) {},
	} {
		seen, services := small()
		seen.LoadBalancers = append(seen.LoadBalancers, lb.LoadBalancer{ID: balancerID("kubernetes-internal"), SKU: lb.Basic, Frontends: []lb.Frontend{{Name: "a2", Subnet: network, PrivateIP: netip.MustParseAddr("10.0.0.4")}}})
		j := phase.BuildJournal(phase.Journal{}, seen, services, "eastus")
		seen.Interfaces, seen.ScaleSets = nil, nil
		seen.PublicIPs[0].Static, seen.PublicIPs[0].SKU = true, lb.Standard
		seen.LoadBalancers[0].SKU, seen.LoadBalancers[1].SKU = lb.Standard, lb.Standard
		changed(&seen)
		steps := phase.NextSteps(j, seen)
		if wantText == "" && steps.Phase == phase.PhaseDone {
			continue
		}
		if steps.Phase != phase.PhaseVerify || len(steps.StopReasons) != 1 || !strings.HasSuffix(steps.StopReasons[0], ": "+wantText) {
			t.Errorf("%s: %s stops %q", wantText, steps.Phase, steps.StopReasons)
		}
	}
}

// Azure updates references late: a public IP still shown with a deleted load balancer is waited
// for. Private frontends do not wait, since others may take their addresses.
func TestTheTimeBetweenTwoLoadBalancers(t *testing.T) {
	seen, services := small()
	seen.PublicIPs[0].Static = true
	seen.LoadBalancers = append(seen.LoadBalancers, lb.LoadBalancer{ID: balancerID("kubernetes-internal"), SKU: lb.Basic, Frontends: []lb.Frontend{{Name: "a2", Subnet: network, PrivateIP: netip.MustParseAddr("10.0.0.4")}}})
	j := phase.BuildJournal(phase.Journal{}, seen, services, "eastus")
	seen.LoadBalancers, seen.Interfaces, seen.ScaleSets = nil, nil, nil
	steps := phase.NextSteps(j, seen)
	if steps.Phase != phase.PhaseUpgrade || len(steps.WaitReasons) != 1 || !strings.HasPrefix(steps.WaitReasons[0], "public IP ip is still shown with load balancer kubernetes") ||
		len(steps.Put) != 1 || steps.Put[0].ID.Name != "kubernetes-internal" || len(steps.PublicIPs) > 0 {
		t.Errorf("%s waits for %q, and makes %+v", steps.Phase, steps.WaitReasons, steps.Put)
	}
	seen.PublicIPs[0].UsedBy = ""
	if steps = phase.NextSteps(j, seen); steps.Phase != phase.PhaseUpgrade || len(steps.WaitReasons) > 0 || len(steps.PublicIPs) != 1 || len(steps.Put) != 1 {
		t.Errorf("%s waits for %q, and upgrades %d", steps.Phase, steps.WaitReasons, len(steps.PublicIPs))
	}
}

func FuzzParse(f *testing.F) {
	seen, services := small()
	f.Add(phase.FormatJournal(phase.BuildJournal(phase.Journal{}, seen, services, "eastus")))
	f.Add(`{"loadBalancers":[{"id":{"SubscriptionID":"..","ResourceGroup":"g","Name":"../x"}}]}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		j, err := phase.ParseJournal(text)
		if err != nil {
			return
		}
		for _, b := range j.LoadBalancers {
			if b.ID.Validate() != nil {
				t.Errorf("%q names %s", text, b.ID)
			}
		}
		if second, err := phase.ParseJournal(phase.FormatJournal(j)); err != nil || phase.FormatJournal(second) != phase.FormatJournal(j) {
			t.Errorf("%q does not survive: %v", text, err)
		}
	})
}
