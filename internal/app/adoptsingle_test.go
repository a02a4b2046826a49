// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// singles are clusters with one load balancer as cloud-provider-azure left them, by folder in testdata.
var singles = map[string]struct{ pools string }{
	"adoption-single-nodeip":  {"nodeIP"},
	"adoption-single-default": {"nodeIPConfiguration"},
	"adoption-mixed":          {"nodeIPConfiguration"},
}

// newPutCloud puts the resources of a folder in testdata into an Azure one by one, which derives members of pools.
func newPutCloud(t *testing.T, folder string) *cloud {
	t.Helper()
	var resources []struct {
		ID   string          `json:"id"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "testdata/"+folder+"/resources.json")), &resources); err != nil {
		t.Fatal(err)
	}
	c := newCloud(t, nil)
	for _, r := range resources {
		if err := c.Put(r.ID, r.Body); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// writeConfig writes the azure.json of a folder in testdata with other values of some keys; nil removes a key.
func writeConfig(t *testing.T, folder string, keys map[string]any) string {
	t.Helper()
	var values map[string]any
	if err := json.Unmarshal([]byte(readFile(t, "testdata/"+folder+"/azure.json")), &values); err != nil {
		t.Fatal(err)
	}
	for key, value := range keys {
		if values[key] = value; value == nil {
			delete(values, key)
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/azure.json"
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// On one load balancer all Services, Local ones too, keep the pool of all nodes, of whichever kind it is, with and
// without the keys that name it.
func TestAnAdoptionOfOneLoadBalancer(t *testing.T) {
	for folder, single := range singles {
		c := newPutCloud(t, folder)
		for about, keys := range map[string]map[string]any{
			"as it is":                        nil,
			"without the kind of pools":       {"loadBalancerBackendPoolConfigurationType": nil},
			"with the kind of pools":          {"loadBalancerBackendPoolConfigurationType": single.pools},
			"all Services on all nodes' pool": {"localServicePools": "nodes"},
			"default limit of rules":          {"maximumLoadBalancerRuleCount": nil},
		} {
			p, err := c.plan(t, writeConfig(t, folder, keys), readFile(t, "testdata/"+folder+"/services.yaml"), withoutClass)
			if err != nil {
				t.Fatalf("%s, %s: %v", folder, about, err)
			}
			if p.Changes > 0 || len(p.Services) != 20 || len(p.Pools) > 0 {
				t.Errorf("%s, %s: Weir would change what the Azure cloud provider made:\n%s", folder, about, p.FormatText(false))
			}
		}
	}
}

// With localServicePools own, the plan shows for each Local Service which rule changes its pool, and the pool that is
// made and filled first.
func TestAnAdoptionThatChangesThePoolsOfLocalServices(t *testing.T) {
	const folder = "adoption-single-nodeip"
	c := newPutCloud(t, folder)
	p, err := c.plan(t, writeConfig(t, folder, map[string]any{"localServicePools": "own"}), readFile(t, "testdata/"+folder+"/services.yaml"), withoutClass)
	if err != nil {
		t.Fatal(err)
	}
	text := p.FormatText(false)
	for _, part := range []string{"pool: kubernetes → shop-local", "+ pool shop-local", "kubernetes-IPv6 → default-dual-ipv6",
		"rules change their backend pool, each after its new pool is filled: a write of each of 2 load balancers creates "} {
		if !strings.Contains(text, part) {
			t.Errorf("the plan does not say %q:\n%s", part, text)
		}
	}
}
