// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Retained public IPs that no Service uses are bounded per namespace: beyond, the namespace gets no new public IP, and keeps those
// that it has.
func TestRetainedPublicIPsAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		of      string
		retain  int
		change  func(i int, ip *lb.PublicIP)
		wants   service.PublicIP
		rejects bool
	}{
		"one less":                      {of: "shop", retain: service.MaxRetained - 1, wants: own("")},
		"as many":                       {of: "shop", retain: service.MaxRetained, wants: own(""), rejects: true},
		"a retained one is named":       {of: "shop", retain: service.MaxRetained, wants: brought("r-0", "")},
		"of another namespace":          {of: "bank", retain: service.MaxRetained, wants: own("")},
		"one of them is in use":         {of: "shop", retain: service.MaxRetained, wants: own(""), change: useFirst},
		"of another cluster":            {of: "shop", retain: service.MaxRetained, wants: own(""), change: moveToCluster},
		"not retained, but also unused": {of: "shop", retain: service.MaxRetained, wants: own(""), change: unretain},
	} {
		t.Run(name, func(t *testing.T) {
			var ips []lb.PublicIP
			for i := range tt.retain {
				ip := exists(fmt.Sprintf("r-%d", i), fmt.Sprintf("%s/s%d", tt.of, i), fmt.Sprintf("20.0.0.%d", i+1))
				ip.Tags[service.TagRetained] = "2026-11-01T00:00:00Z"
				if tt.change != nil {
					tt.change(i, &ip)
				}
				ips = append(ips, ip)
			}
			manager, azure := keeperOf(ips...)
			req := requestOf(tt.wants)
			round := manager.BeginRound(t.Context(), kubernetes, []*Request{req})
			round.WriteRequired(t.Context())
			if tt.rejects != (req.Err != nil) {
				t.Fatalf("rejected: %v", req.Err)
			}
			if tt.rejects && (!strings.Contains(req.Err.Error(), "namespace shop has 20 retained public IPs") || len(azure.said) > 0) {
				t.Errorf("%v; wrote %v", req.Err, azure.said)
			}
		})
	}
}

// The public IP that a Service already has is not affected by the bound.
func TestTheBoundOfRetainedSparesWhatExists(t *testing.T) {
	ips := []lb.PublicIP{exists("c-a1", "shop/web", "20.0.1.1")}
	for i := range service.MaxRetained {
		ip := exists(fmt.Sprintf("r-%d", i), fmt.Sprintf("shop/s%d", i), fmt.Sprintf("20.0.0.%d", i+1))
		ip.Tags[service.TagRetained] = "2026-11-01T00:00:00Z"
		ips = append(ips, ip)
	}
	manager, _ := keeperOf(ips...)
	req := requestOf(own(""))
	if manager.BeginRound(t.Context(), kubernetes, []*Request{req}); req.Err != nil {
		t.Error(req.Err)
	}
}

func useFirst(i int, ip *lb.PublicIP) {
	if i == 0 {
		ip.UsedBy = kubernetes.String() + "/frontendIPConfigurations/a9"
	}
}

func moveToCluster(_ int, ip *lb.PublicIP) { ip.Tags[service.TagCluster] = "d" }

func unretain(_ int, ip *lb.PublicIP) { lb.UnsetTag(ip.Tags, service.TagRetained) }
