// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
)

// kubectl get backendpools fits 120 columns with long names and the longest state.
func TestBackendPoolsFitATerminal(t *testing.T) {
	raw, err := os.ReadFile("../config/crd/weir.dev_backendpools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				AdditionalPrinterColumns []struct {
					Name     string
					Priority int
				}
			}
		}
	}
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"Load balancer": "kubernetes-internal", "State": v1alpha1.ReasonLoadBalancerNotFound, "Age": "119m"}
	header, row := []string{"NAME"}, []string{"storefront-checkout.kubernetes"}
	for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			header, row = append(header, strings.ToUpper(c.Name)), append(row, values[c.Name])
		}
	}
	if want := "NAME LOAD BALANCER DESIRED OBSERVED FOREIGN DOWN STATE AGE"; strings.Join(header, " ") != want {
		t.Errorf("the columns are %q, want %q", strings.Join(header, " "), want)
	}
	const gap = 3
	width := -gap
	for i := range header {
		width += max(len(header[i]), len(row[i])) + gap
	}
	if width > 120 {
		t.Errorf("%d columns: %q", width, header)
	}
}
