// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

var home = lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0"}

// The cases are in a file that also tests the policy in config/admission.
func TestAllows(t *testing.T) {
	text, err := os.ReadFile("testdata/lists.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		part := strings.Split(strings.TrimRight(line, "\n"), "|")
		on, name := home, strings.Split(strings.TrimSpace(part[1]), "/")
		on.Name = name[len(name)-1]
		if len(name) > 1 {
			on.ResourceGroup = name[len(name)-2]
		}
		if len(name) > 2 {
			on.SubscriptionID = name[0]
		}
		if got, want := service.IsLoadBalancerAllowed(part[0], home, on), strings.TrimSpace(part[2]) == "yes"; got != want {
			t.Errorf("%q allows %s: %v, want %v", part[0], on, got, want)
		}
	}
	if lines < 30 {
		t.Errorf("only %d lines", lines)
	}
}

// A list allows what any of its entries allows.
func TestAListIsTheUnionOfItsEntries(t *testing.T) {
	entry := rapid.SampledFrom([]string{"", " ", "*", "web", "WEB", "rg1/web", "rg0/web", "s0/rg0/web", "s1/rg0/web", "/web", "a/b/c/d", "db"})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(entry, 0, 5).Draw(t, "list")
		on := lb.LoadBalancerID{
			SubscriptionID: rapid.SampledFrom([]string{"s0", "s1"}).Draw(t, "subscription"),
			ResourceGroup:  rapid.SampledFrom([]string{"rg0", "RG1"}).Draw(t, "group"), Name: rapid.SampledFrom([]string{"web", "Db"}).Draw(t, "name"),
		}
		want := false
		for _, single := range list {
			want = want || service.IsLoadBalancerAllowed(single, home, on)
		}
		if got := service.IsLoadBalancerAllowed(strings.Join(list, " ,"), home, on); got != want {
			t.Errorf("%q allows %v: %v, want %v", list, on, got, want)
		}
	})
}

// FuzzAllows: only * allows a load balancer whose name is not in the list.
func FuzzAllows(f *testing.F) {
	f.Add("a,b/c,*")
	f.Add("//,/,, ,\u212aubernetes")
	f.Fuzz(func(t *testing.T, list string) {
		on := lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: "kubernetes"}
		if service.IsLoadBalancerAllowed(list, home, on) && !strings.Contains(list, "*") && !strings.Contains(strings.ToLower(list), "kubernetes") {
			t.Errorf("%q allows %v", list, on)
		}
	})
}
