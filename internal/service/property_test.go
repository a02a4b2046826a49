// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
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
		if is := spec.Rules[0].ConnectionTracking; is != nil {
			tracking = fmt.Sprint(*is)
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
