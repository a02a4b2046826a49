// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Additional addresses must be public, and no all-ports rule applies to them.
func TestFurtherAddressesArePublic(t *testing.T) {
	for value, wrong := range map[string]bool{
		"20.0.0.9": false, "2603:1030::9, 20.0.0.9": false,
		"10.0.0.4": true, "172.31.0.4": true, "192.168.1.4": true, "100.64.0.4": true, "fd00::4": true, // nodes and pods
		"127.0.0.1": true, "169.254.169.254": true, "168.63.129.16": true, "0.0.0.0": true, "224.0.0.1": true, "255.255.255.255": true,
		"::": true, "::1": true, "fe80::1": true, "ff02::1": true, "::ffff:20.0.0.9": true,
		"20.0.0.9,10.0.0.4": true, "20.0.0.0/24": true, "*": true, "fe80::1%eth0": true,
	} {
		_, problems := BuildSpec(newService(withAnnotation(AdditionalIPs, value)), testSettings())
		if (len(problems) > 0) != wrong {
			t.Errorf("%s: %v", value, problems)
		}
	}
	if _, problems := BuildSpec(newService(asInternal, withAnnotation(HAPorts, "true"), withAnnotation(AdditionalIPs, "20.0.0.9")), testSettings()); len(problems) != 1 || problems[0].Field != AdditionalIPs {
		t.Errorf("beside high availability ports: %v", problems)
	}
}

// ParseAdditional agrees with the Spec.
func TestAdditionalOf(t *testing.T) {
	want := []netip.Addr{netip.MustParseAddr("20.0.0.9"), netip.MustParseAddr("2603:1030::9")}
	if got := ParseAdditional("20.0.0.9, here,10.0.0.4,,2603:1030::9"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := ParseAdditional(strings.Repeat("20.0.0.9,", 20000)); len(got) != maxParsedAddresses {
		t.Errorf("%d of 20,000 are read", len(got))
	}
}
