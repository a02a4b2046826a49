// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"testing"
)

func TestNewer(t *testing.T) {
	for message, want := range map[string]string{
		"Resource x cannot be updated using API version 2025-05-01 since it uses the property p which has been set using a higher API version 2025-09-01.": "2025-09-01",
		`Needs api version "2025-09-01"`:                            "2025-09-01",
		"a higher API version 2025-09-01-preview.":                  "",
		"API version 2024-01-01":                                    "",
		"API version 2025-05-01":                                    "",
		"Resource 2031-01-01 cannot be updated":                     "",
		"API version 2025-07-01 and API version 2025-09-01, please": "2025-09-01",
		"": "",
	} {
		if got := findNewerVersion(message, "2025-05-01"); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
}

// Memory is bounded and case-insensitive.
func TestMemory(t *testing.T) {
	var m versionCache
	if m.ResourceVersion("Microsoft.Network/loadBalancers", "/a") != networkAPIVersion || m.ResourceVersion("Microsoft.Compute/virtualMachineScaleSets", "/a") != computeAPIVersion {
		t.Error("another base")
	}
	for i := range 3 * maxResources {
		m.StoreVersion(fmt.Sprint("/LB", i), "2031-01-01")
	}
	if len(m.versions) > maxResources {
		t.Errorf("%d are remembered", len(m.versions))
	}
	if m.ResourceVersion("Microsoft.Network/loadBalancers", fmt.Sprint("/lb", 3*maxResources-1)) != "2031-01-01" {
		t.Error("the last one is forgotten")
	}
}
