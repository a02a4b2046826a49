// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
)

func TestListRegionUsages(t *testing.T) {
	got := ListRegionUsages("eastus", []RegionUsage{{"IPv4StandardSkuPublicIpAddresses", 800, 1000}, {"LoadBalancers", 3, -1}, {"RouteTables", 9, 9}, {"publicIPAddresses", 1000, 1000}})
	want := []LimitUsage{{"region eastus", "Standard public IPv4 addresses", 800, 800, 1000}, {"region eastus", "public IPs", 1000, 1000, 1000}}
	if !slices.Equal(got, want) || !got[0].IsNear() || got[0].IsReached() || !got[1].IsReached() || !got[0].IsOfRegion() || (LimitUsage{Resource: "region-eastus"}).IsOfRegion() {
		t.Errorf("%+v", got)
	}
}
