// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"strings"
	"testing"

	"weir.dev/weir/test/referencepage"
)

const adoptionInterfaces = "testdata/adoption-interfaces/"

// newMachines is an Azure as cloud-provider-azure leaves it with pools of network interfaces, modified by
// change; returning no body removes a resource.
func newMachines(t *testing.T, change ...func(id string, text string) string) *cloud {
	t.Helper()
	var resources []struct {
		ID   string          `json:"id"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal([]byte(readFile(t, adoptionInterfaces+"resources.json")), &resources); err != nil {
		t.Fatal(err)
	}
	c := newCloud(t, nil)
	for _, r := range resources {
		text := string(r.Body)
		for _, edit := range change {
			text = edit(r.ID, text)
		}
		if text == "" {
			continue
		}
		if err := c.Put(r.ID, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Taking over pools of network interfaces from cloud-provider-azure changes nothing: the members have the
// same IDs. Differences are reported by node.
func TestAnAdoptionOfPoolsOfNetworkInterfaces(t *testing.T) {
	services := readFile(t, adoptionInterfaces+"services.yaml")
	leaves := func(pool, of string) func(string, string) string {
		return func(id, text string) string {
			if strings.HasSuffix(id, of) {
				var kept []string
				for _, part := range strings.SplitAfter(text, `"id"`) {
					kept = append(kept, strings.Replace(part, "/"+pool+`"`, `/aksOutboundBackendPool"`, 1))
				}
				return strings.Join(kept, "")
			}
			return text
		}
	}
	gone := asNodePorts(strings.ReplaceAll(services, "  finalizers:\n", "  finalizers:\n  - weir.dev/azure-load-balancer\n"))
	excluded := strings.Replace(services, "    kubernetes.io/hostname: node-2\n", "    kubernetes.io/hostname: node-2\n    node.kubernetes.io/exclude-from-external-load-balancers: 'true'\n", 1)
	noMember := leaves("kubernetes/backendAddressPools/kubernetes", "networkInterfaces/node-0-nic")
	var texts []string
	for _, tt := range []struct {
		about   string
		cloud   *cloud
		objects string
	}{
		{"all as it is", newMachines(t), services},
		{"a machine is in no pool of the cluster", newMachines(t, noMember), services},
		{"a node is excluded", newMachines(t), excluded},
		{"no Service has a load balancer any more", newMachines(t), gone},
	} {
		p, err := tt.cloud.plan(t, adoptionInterfaces+"azure.json", tt.objects, withoutClass)
		if err != nil {
			t.Fatalf("%s: %v", tt.about, err)
		}
		if tt.about == "all as it is" && (p.Changes > 0 || len(p.Services) != 3 || len(p.Pools) > 0) {
			t.Errorf("Weir would change what the Azure cloud provider made:\n%s", p.FormatText(false))
		}
		texts = append(texts, "=== "+tt.about+"\n"+p.FormatText(false)+"\n")
	}
	referencepage.ExpectFile(t, adoptionInterfaces+"plans.txt", strings.Join(texts, ""))
}
