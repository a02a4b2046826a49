// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

func TestPlaceValue(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, want := range map[string]string{
		"kubernetes": "kubernetes", "LB-2": "lb-2", "0.a_b": "0.a_b", long: long,
		"pool_":    "pool-7ba6d554",
		long + "b": strings.Repeat("a", 54) + "-d66f0acc",
		strings.Repeat("a", 53) + "-" + long[:26]: strings.Repeat("a", 53) + "-34159fa9",
	} {
		got := PlaceValue(name)
		if got != want || len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if strings.ToUpper(name) != name && PlaceValue(strings.ToUpper(name)) != got {
			t.Errorf("%s: capitals make a difference", name)
		}
	}
	if PlaceValue(long+"b") == PlaceValue(long+"c") {
		t.Error("two names have one value")
	}
}

func TestNodesOf(t *testing.T) {
	if got := NodesOn("One", nil); len(got.MatchLabels) != 0 {
		t.Errorf("one load balancer selects %v", got)
	}
	several := []service.Configuration{{Name: "One"}, {Name: "two"}}
	for name, want := range map[string]string{"one-internal": "one", "TWO": "two", "three": ""} {
		if got := NodesOn(name, several).MatchLabels[metadata.PlaceLabel]; got != want {
			t.Errorf("%s selects %q, want %q", name, got, want)
		}
	}
}
