// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/zones"
)

// New load balancers are in the edge zone of azure.json. What is made for a load balancer is where it is, without
// availability zones, also if azure.json names another place.
func TestEdgeZone(t *testing.T) {
	const edge = `"extendedLocation":{"name":"losangeles","type":"EdgeZone"}`
	for _, tt := range []struct {
		name, zone, put string
		want            bool
	}{
		{"a new load balancer", "losangeles", "", true},
		{"no edge zone", "", "", false},
		{"an existing one in the region", "losangeles", `{location: eastus, sku: {name: Standard}, properties: {frontendIPConfigurations: [{name: theirs, properties: {subnet: {id: ~/virtualNetworks/net/subnets/nodes}}}]}}`, false},
		{"an existing one in another edge zone", "perth", `{location: eastus, extendedLocation: {name: losangeles, type: EdgeZone}, sku: {name: Standard}, properties: {frontendIPConfigurations: [{name: theirs, properties: {subnet: {id: ~/virtualNetworks/net/subnets/nodes}}}]}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(linked, func(set *loadbalancer.Settings) { set.ExtendedLocation = tt.zone })
				defer func() { s.close() }()
				s.zones = zones.NewRegions(func(context.Context) (map[string][]string, error) {
					return map[string][]string{"eastus": {"1", "2", "3"}}, nil
				}, quiet)
				s.stop()
				for _, name := range []string{"kubernetes", "kubernetes-internal"} {
					if tt.put != "" {
						s.put("loadBalancers/"+name, tt.put)
					}
				}
				s.launch()
				s.applyAll(`
shop/a: {ports: 80, azure-pls-create: "true", azure-pls-ip-configuration-subnet: links}
shop/b: {ports: 80, azure-load-balancer-internal: "true"}`)
				s.settle(10 * time.Minute)
				for _, path := range []string{"loadBalancers/kubernetes", "loadBalancers/kubernetes-internal", "publicIPAddresses/kubernetes-a001", "privateLinkServices/pls-a001"} {
					raw, found := s.emu.Get(network + "/" + path)
					text := strings.ReplaceAll(string(raw), " ", "")
					hasZones := strings.Contains(text, `"zones":["1","2","3"]`)
					mayHave := path == "loadBalancers/kubernetes-internal" || path == "publicIPAddresses/kubernetes-a001"
					if !found || strings.Contains(text, edge) != tt.want || hasZones != (mayHave && !tt.want) || strings.Contains(text, "perth") {
						t.Errorf("%s: %s\n%s", path, text, s.harvest(false))
					}
				}
			})
		})
	}
}

// A process that has not read the load balancer yet reads it before it makes a public IP.
func TestEdgeZoneAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer func() { s.close() }()
		s.applyAll(`shop/a: {ports: 80}`)
		s.settle(10 * time.Minute)
		s.stop()
		s.settings.ExtendedLocation = "losangeles"
		s.launch()
		s.applyAll(`shop/a: {ports: 80, families: IPv4 IPv6}`)
		s.settle(10 * time.Minute)
		raw, found := s.emu.Get(network + "/publicIPAddresses/kubernetes-a001-IPv6")
		if !found || strings.Contains(string(raw), "losangeles") {
			t.Errorf("%s\n%s", raw, s.harvest(false))
		}
	})
}

// A Service that names availability zones in an edge zone is rejected, and others are not.
func TestZonesInAnEdgeZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(set *loadbalancer.Settings) { set.ExtendedLocation = "losangeles" })
		defer func() { s.close() }()
		s.applyAll(`
shop/a: {ports: 80, zones: "1"}
shop/b: {ports: 80, zones: "2", azure-load-balancer-internal: "true"}
shop/c: {ports: 80}
shop/d: {ports: 80, azure-load-balancer-internal: "true"}`)
		s.settle(time.Minute)
		log := s.harvest(false)
		for _, zone := range []string{"1", "2"} {
			if !strings.Contains(log, "weir.dev/zones names zone "+zone+", and edge zone losangeles has no availability zones") {
				t.Errorf("zone %s is not rejected", zone)
			}
		}
		for name, want := range map[string]bool{"publicIPAddresses/kubernetes-a001": false, "publicIPAddresses/kubernetes-a003": true, "loadBalancers/kubernetes-internal": true} {
			if _, found := s.emu.Get(network + "/" + name); found != want {
				t.Errorf("%s: %t, want %t", name, found, want)
			}
		}
		if t.Failed() {
			t.Log(log)
		}
	})
}
