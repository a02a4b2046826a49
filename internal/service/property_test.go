// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"strings"
	"testing"
)

// Without its annotation, a property is empty, or has Azure's default if Weir wrote it.
func TestProperties(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service Service
		want    string
	}{
		{"none", newService(), "probe  rule nil record []"},
		{"both", newService(withAnnotation(NoHealthyBackends, "allprobedup"), withAnnotation(ConnectionTracking, "True")),
			"probe AllProbedUp rule true record [no-healthy-backends-behavior enable-connection-tracking]"},
		{"defaults", newService(withAnnotation(NoHealthyBackends, "AllProbedDown"), withAnnotation(ConnectionTracking, "false")),
			"probe AllProbedDown rule false record [no-healthy-backends-behavior enable-connection-tracking]"},
		{"removed", newService(withAnnotation(WrittenProperties, "enable-connection-tracking,no-healthy-backends-behavior")), "probe AllProbedDown rule false record []"},
		{"one removed", newService(withAnnotation(ConnectionTracking, "true"), withAnnotation(WrittenProperties, "no-healthy-backends-behavior")),
			"probe AllProbedDown rule true record [enable-connection-tracking]"},
		{"another record", newService(withAnnotation(WrittenProperties, "x")), "probe  rule nil record []"},
	} {
		spec := buildValidSpec(t, tt.service, testSettings())
		tracking := "nil"
		if got := spec.Rules[0].ConnectionTracking; got != nil {
			tracking = fmt.Sprint(*got)
		}
		if got := fmt.Sprintf("probe %s rule %s record %v", spec.Probes[0].NoHealthyBackends, tracking, spec.RequestedProperties); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A Service never changes the behavior of the probe that other Services use.
func TestSharedProbeHasNoBehavior(t *testing.T) {
	set := testSettings()
	set.SharedProbe = SharedProbeOf(10256, "/healthz")
	own := buildValidSpec(t, newService(withAnnotation(NoHealthyBackends, "AllProbedUp")), set)
	other := buildValidSpec(t, newService(), set)
	if p := own.Probes[0]; p.Name != own.Rules[0].Name || own.Rules[0].Probe != p.Name || p.Port != 10256 || p.NoHealthyBackends != "AllProbedUp" {
		t.Errorf("probe %+v of rule %+v", p, own.Rules[0])
	}
	if p := other.Probes[0]; p.Name != SharedProbeName || p.NoHealthyBackends != "" || set.SharedProbe.NoHealthyBackends != "" {
		t.Errorf("shared probe %+v", p)
	}
}

// Only a Service's own pools get its drain period: other Services use the pool of all nodes.
func TestDrainPeriod(t *testing.T) {
	local := func(s *Service) { s.Local = true }
	for _, tt := range []struct {
		name      string
		service   Service
		pools     LocalPools
		own, node string
		flawed    bool
		record    string
	}{
		{"none", newService(local), OwnPools, "kept", "kept", false, "[]"},
		{"set", newService(local, withAnnotation(DrainPeriod, "30")), OwnPools, "30", "kept", false, "[drain-period]"},
		{"zero", newService(local, withAnnotation(DrainPeriod, "0")), OwnPools, "0", "kept", false, "[drain-period]"},
		{"removed", newService(local, withAnnotation(WrittenProperties, "drain-period")), OwnPools, "0", "kept", false, "[]"},
		{"Local in the pool of all nodes", newService(local, withAnnotation(DrainPeriod, "30")), AllNodes, "30", "kept", true, "[drain-period]"},
		{"not Local", newService(withAnnotation(DrainPeriod, "30")), OwnPools, "", "kept", true, "[drain-period]"},
		{"not Local, removed", newService(withAnnotation(WrittenProperties, "drain-period")), OwnPools, "", "kept", false, "[]"},
	} {
		set := testSettings()
		set.LocalPools = tt.pools
		text := func(pools []Pool) string {
			switch {
			case len(pools) == 0:
				return ""
			case pools[0].DrainSeconds == nil:
				return "kept"
			}
			return fmt.Sprint(*pools[0].DrainSeconds)
		}
		spec := buildValidSpec(t, tt.service, set)
		set.LocalPools = AllNodes
		flawed := len(spec.Flaws) == 1 && spec.Flaws[0].Field == DrainPeriod && spec.Flaws[0].Effect == effectNotShared
		node := text(spec.SelectPools(set, false, nil).Pools)
		if got := text(spec.OwnPools); got != tt.own || node != tt.node || flawed != tt.flawed || len(spec.Flaws) > 1 || fmt.Sprint(spec.RequestedProperties) != tt.record {
			t.Errorf("%s: own pool %s, pool of all nodes %s, flaws %v, record %v", tt.name, got, node, spec.Flaws, spec.RequestedProperties)
		}
	}
}

func gatewayFrontend(name string) string {
	return subscription + "/resourceGroups/net/providers/Microsoft.Network/loadBalancers/gw/frontendIPConfigurations/" + name
}

// Each public frontend is chained to the gateway load balancer of its family. Without the annotation it keeps its own, unless
// Weir wrote it.
func TestGatewayLoadBalancer(t *testing.T) {
	written := withAnnotation(WrittenProperties, "gateway-load-balancer")
	for _, tt := range []struct {
		name    string
		service Service
		want    string
	}{
		{"none", newService(), "kept record []"},
		{"set", newService(withAnnotation(GatewayLoadBalancer, " "+strings.ToUpper(gatewayFrontend("a"))+" ")), "A record [gateway-load-balancer]"},
		{"two families", newService(asDualStack, withAnnotation(GatewayLoadBalancer, gatewayFrontend("a")+", "+gatewayFrontend("b")), written), "a b record [gateway-load-balancer]"},
		{"removed", newService(asDualStack, written), "none none record []"},
		{"internal", newService(asInternal), "kept record []"},
		{"internal, removed", newService(asInternal, written), "kept record []"},
	} {
		spec, got := buildValidSpec(t, tt.service, testSettings()), ""
		for _, f := range spec.Frontends {
			switch current := f.Frontend.GatewayLoadBalancer; {
			case current == nil:
				got += "kept "
			case *current == "":
				got += "none "
			default:
				got += (*current)[strings.LastIndex(*current, "/")+1:] + " "
			}
		}
		if got += fmt.Sprintf("record %v", spec.RequestedProperties); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
