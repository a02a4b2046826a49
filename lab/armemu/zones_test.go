// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

func zoneViolations() []ruleViolation {
	three := []string{"1", "2", "3"}
	zoned := func(zones string) string {
		return strings.Replace(lb("Standard", static), `"location"`, `"zones":[`+zones+`],"location"`, 1)
	}
	frontend := func(zones string) string {
		return withFrontends(strings.Replace(privateFrontend("fe", nodesID, ""), `"name"`, `"zones":[`+zones+`],"name"`, 1))
	}
	return []ruleViolation{
		{rule: "region-has-zones", zones: []string{}, id: pips + "new", bad: zoned(`"1"`), good: lb("Standard", static), message: "publicIPAddresses/new' does not support availability zones at location 'eastus'"},
		{rule: "zones-of-region", zones: three, id: pips + "new", bad: zoned(`"1","4"`), good: zoned(`"1","2","3"`), message: "The zone(s) '4' for resource 'Microsoft.Network/publicIPAddresses/new' is not supported. The supported zones for location 'eastus' are '1,2,3'"},
		{rule: "frontend-zones-of-region", zones: three, id: otherLB, bad: frontend(`"7"`), good: frontend(`"2"`), message: "frontendIPConfigurations/fe which uses zone 7"},
		{rule: "frontend-zones-of-region", zones: []string{}, id: otherLB, bad: frontend(`"1"`), good: frontend(``), message: "does not support zone 1 in location eastus"},
	}
}

// The locations show the zones of the option, in any region; the right to read them is one of the subscription.
func TestLocations(t *testing.T) {
	const path = "/subscriptions/s1/locations?api-version=2022-12-01"
	for _, tt := range []struct {
		opts   armemu.Options
		status int
		want   []string
		never  string
	}{
		{armemu.Options{}, http.StatusOK, []string{`"name":"eastus"`}, "logicalZone"},
		{armemu.Options{Zones: []string{"1", "2"}}, http.StatusOK, []string{`"logicalZone":"1","physicalZone":"eastus-az2"`, `"logicalZone":"2"`, `"name":"norwayeast"`}, `"logicalZone":"3"`},
		{armemu.Options{Role: &armemu.Role{Actions: []string{"Microsoft.Resources/subscriptions/locations/read"}}}, http.StatusOK, []string{`"name":"eastus"`}, "logicalZone"},
		{armemu.Options{Role: &armemu.Role{Actions: []string{"Microsoft.Network/locations/usages/read"}}}, http.StatusForbidden, []string{"AuthorizationFailed"}, `"value"`},
	} {
		emu := newCloud(t, tt.opts)
		if err := emu.Put("/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/far", []byte(`{"location":"Norway East"}`)); err != nil {
			t.Fatal(err)
		}
		a := sendRequest(t, emu, http.MethodGet, path, "")
		if a.status != tt.status || strings.Contains(a.raw, tt.never) {
			t.Errorf("%+v: %d %s", tt.opts, a.status, a.raw)
		}
		for _, want := range tt.want {
			if !strings.Contains(a.raw, want) {
				t.Errorf("%+v: no %s in %s", tt.opts, want, a.raw)
			}
		}
	}
}
