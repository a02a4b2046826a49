// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

var (
	ipHome = lb.ResourceID{SubscriptionID: "sub", ResourceGroup: "rg", Type: lb.TypePublicIP}
	bankIP = lb.ResourceID{SubscriptionID: "sub", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: "bank-ip"}
)

func TestGrantsOfPublicIPs(t *testing.T) {
	for _, tt := range []struct {
		annotation, tag    string
		tagged, use, label bool
		err                string
	}{
		{"", "", false, false, false, ""},
		{"bank-ip", "", false, true, true, ""},
		{"other, RG/Bank-IP", "", false, true, true, ""},
		{"sub/rg/bank-ip", "", false, true, true, ""},
		{"*", "", false, true, true, ""},
		{"other", "", false, false, false, ""},
		{"net/bank-ip", "", false, false, false, ""},
		{"other/rg/bank-ip", "", false, false, false, ""},
		{"bank-ip,", "", false, false, false, `entry 2 is "", so the list grants nothing`},
		{"bank-ip, *x", "", false, false, false, `annotation weir.dev/allowed-public-ips of Namespace shop: entry 2 is "*x"`},
		{"bank-ip; other", "", false, false, false, "entry 1"},
		{"a/b/c/bank-ip", "", false, false, false, "entry 1"},
		{"/bank-ip", "", false, false, false, "entry 1"},
		{"", "shop", true, true, true, ""},
		{"", "bank , shop", true, true, true, ""},
		{"", "*", true, true, false, ""},
		{"", "*,shop", true, true, true, ""},
		{"bank-ip", "bank", true, false, false, ""},
		{"bank-ip", "shop,", true, false, false, "tag weir-allowed-namespaces of public IP bank-ip: entry 2"},
		{"bank-ip", "Shop", true, false, false, "entry 1"},
		{"bank-ip", " ", true, false, false, "entry 1"},
	} {
		tags := map[string]string{}
		if tt.tag != "" {
			tags["WEIR-allowed-namespaces"] = tt.tag
		}
		got, err := service.EvaluatePublicIP("shop", tt.annotation, ipHome, bankIP, tags)
		if want := (service.PublicIPGrant{FromTag: tt.tagged, Use: tt.use, Label: tt.label}); got != want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("annotation %q, tag %q: %+v, %v, want %+v, %q", tt.annotation, tt.tag, got, err, want, tt.err)
		}
	}
}

// A list with one invalid entry grants nothing.
func TestAnErrorGrantsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom([]string{"bank-ip", "*", "rg/bank-ip", "other"}), 1, 5).Draw(t, "list")
		list[rapid.IntRange(0, len(list)-1).Draw(t, "at")] = rapid.SampledFrom([]string{",", "a b", "/", "x/y/z/w", "*/*", "rg/", "-x"}).Draw(t, "wrong")
		if got, err := service.EvaluatePublicIP("shop", strings.Join(list, ","), ipHome, bankIP, nil); err == nil || got != (service.PublicIPGrant{}) {
			t.Fatalf("%q grants %+v, %v", list, got, err)
		}
		if got, err := service.EvaluatePublicIP("shop", "*", ipHome, bankIP, map[string]string{service.NamespacesTag: "shop," + list[0] + ",A"}); err == nil || got.Use || got.Label {
			t.Fatalf("the tag grants %+v, %v", got, err)
		}
	})
}
