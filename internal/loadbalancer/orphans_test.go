// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Leftovers of a Service without finalizer are found and not changed. Resources in use, shared, retained for
// others or with other names are not reported.
func TestLeftoversAreFoundAndStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		defer func() { s.close() }()
		long := func(c string) string { return strings.Repeat(c, 31) }
		for i, c := range []string{"b", "c", "d", "e"} {
			spec := specOf(map[string]string{"ports": []string{"80", "80", "81", "80"}[i]})
			spec.UID = long(c)
			if c == "d" { // shares c's address
				spec.Annotations["service.beta.kubernetes.io/azure-pip-name"] = clusterName + "-a" + long("c")
			}
			s.apply("shop/"+c, spec, nil)
			s.settle(time.Hour)
		}
		s.put("publicIPAddresses/a0", `{location: eastus, sku: {name: Standard}, tags: {k8s-azure-service: shop/x}, properties: {publicIPAllocationMethod: Static}}`)
		s.put("publicIPAddresses/other-a"+long("f"), `{location: eastus, sku: {name: Standard}, tags: {k8s-azure-service: shop/x, k8s-azure-cluster-name: other}, properties: {publicIPAllocationMethod: Static}}`)
		look := func() string {
			orphans, err := s.process.balancers.ListOrphans(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, l := range orphans {
				lines = append(lines, strings.NewReplacer(long("b"), "b", long("c"), "c").Replace(l.Description)+" "+l.Service)
			}
			return strings.Join(lines, "\n")
		}
		if found := look(); found != "" {
			t.Errorf("found while all Services are there:\n%s", found)
		}
		s.remove("shop/c") // its address remains for d
		s.settle(time.Hour)
		s.stop()
		delete(s.services, "shop/b")
		s.launch()
		s.emu.ClearCalls()
		want := "frontend ab of load balancer kubernetes \npublic IP kubernetes-ab shop/b\nrule ab-TCP-80 of load balancer kubernetes "
		if found := look(); found != want {
			t.Errorf("found\n%s\nwant\n%s", found, want)
		}
		s.kickAll()
		s.settle(time.Hour)
		if n := len(s.emu.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete))); n > 0 {
			t.Errorf("%d writes", n)
		}
	})
}
