// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir.dev/weir/internal/loadbalancer/dryrun"
)

// A plan lists addresses that would be lost, and resources that would remain unused.
func TestPlansListLosses(t *testing.T) {
	served := strings.ReplaceAll(readFile(t, adoption+"services.yaml"), "  finalizers:\n", "  finalizers:\n  - weir.dev/azure-load-balancer\n")
	elsewhere := filepath.Join(t.TempDir(), "azure.json")
	moved := strings.Replace(readFile(t, adoption+"azure.json"), `"resourceGroup": "rg"`, `"resourceGroup": "elsewhere", "loadBalancerResourceGroup": "rg"`, 1)
	if err := os.WriteFile(elsewhere, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		about, azure, objects string
		change                func(*PlanOptions)
		wantText              []string
		lost, kept            int
	}{
		{"all as it is", adoption + "azure.json", served, withoutClass, []string{"No changes (20 Services)."}, 0, 0},
		{"another class", adoption + "azure.json", served, func(*PlanOptions) {},
			[]string{`! Service default/affinity and 19 others kept: the class is "", and --load-balancer-class is "weir.dev/azure"`, "No changes (20 Services)."}, 0, 20},
		{"one Service of another class", adoption + "azure.json", served, func(o *PlanOptions) { o.Namespace, o.Service = "default", "cluster" },
			[]string{"! Service default/cluster kept: "}, 0, 1},
		{"all become NodePorts", adoption + "azure.json", asNodePorts(served), withoutClass,
			[]string{"! 13 public IPs are DELETED, their addresses cannot be had again:\n", "(public IP kubernetes-a"}, 13, 0},
		{"public IPs in another resource group", elsewhere, served, withoutClass,
			[]string{"! 13 public IPs are DELETED, their addresses cannot be had again:\n", "! the controller would wait before it takes addresses from 12 of 20 Services"}, 13, 0},
	} {
		t.Run(tt.about, func(t *testing.T) {
			t.Parallel()
			p, err := newCloud(t, []byte(readFile(t, adoption+"resources.json"))).plan(t, tt.azure, tt.objects, tt.change)
			if err != nil {
				t.Fatal(err)
			}
			text := p.FormatText(false)
			for _, message := range tt.wantText {
				if !strings.Contains(text, message) {
					t.Errorf("it does not say %q:\n%s", message, text)
				}
			}
			kept := 0
			for _, s := range p.Services {
				if s.Kept != "" {
					kept++
				}
			}
			if kept != tt.kept || len(p.Losses) != tt.lost {
				t.Errorf("%d Services kept, want %d; %d addresses lost, want %d", kept, tt.kept, len(p.Losses), tt.lost)
			}
			raw, err := p.FormatJSON()
			var read dryrun.Report
			if err != nil || json.Unmarshal(raw, &read) != nil || len(read.Losses) != len(p.Losses) || strings.Contains(string(raw), `"losses"`) != (len(p.Losses) > 0) {
				t.Errorf("for machines: %v\n%s", err, raw)
			}
		})
	}
}

// forLoadBalancers matches fields that only type LoadBalancer allows.
var forLoadBalancers = regexp.MustCompile(`(?m)^  (allocateLoadBalancerNodePorts|healthCheckNodePort): .*\n|^  loadBalancerSourceRanges:\n(  - .*\n)+`)

// asNodePorts changes the type of all Services.
func asNodePorts(services string) string {
	return strings.ReplaceAll(forLoadBalancers.ReplaceAllString(services, ""), "type: LoadBalancer", "type: NodePort")
}
