// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// A plan shows the zones of new public IPs and private frontends, rejects zones that the region does not have, and notes
// that the zones are not known. Without zones it shows none.
func TestPlansOfZones(t *testing.T) {
	three := []string{"1", "2", "3"}
	const internal = `service.beta.kubernetes.io/azure-load-balancer-internal: "true"`
	for name, tt := range map[string]struct {
		opts          armemu.Options
		now           string
		annotations   string
		text, refused string
		json          string
		note          bool
	}{
		"a public IP":             {opts: armemu.Options{Zones: three}, text: "    zones: 1, 2, 3\n", json: `"is": "1, 2, 3"`},
		"a private frontend":      {opts: armemu.Options{Zones: three}, annotations: internal, text: "        zones: 1, 2, 3\n", json: `"is": "1, 2, 3"`},
		"of azure.json":           {opts: armemu.Options{Zones: three}, now: `, "availabilityZones": ["2"]`, annotations: internal, text: "zones: 2\n"},
		"of the Service":          {opts: armemu.Options{Zones: three}, now: `, "availabilityZones": ["2"]`, annotations: `weir.dev/zones: "3"`, text: "zones: 3\n"},
		"not of the region":       {opts: armemu.Options{Zones: three}, annotations: `weir.dev/zones: "9"`, refused: "names zone 9, and region eastus has zones 1, 2, 3"},
		"a region without zones":  {opts: armemu.Options{Zones: []string{}}, annotations: internal},
		"zones are not known":     {opts: armemu.Options{Zones: three, Role: &armemu.Role{Actions: []string{"*"}, NotActions: []string{"Microsoft.Resources/*"}}}, note: true},
		"known by azure.json":     {opts: armemu.Options{Zones: three, Role: &armemu.Role{Actions: []string{"*"}, NotActions: []string{"Microsoft.Resources/*"}}}, now: `, "availabilityZones": ["1"]`, text: "zones: 1\n"},
		"azure.json wants none":   {opts: armemu.Options{Zones: three}, now: `, "availabilityZones": []`, annotations: internal},
		"not valid, of a Service": {opts: armemu.Options{Zones: three}, annotations: `weir.dev/zones: all`, refused: `weir.dev/zones is "all": want different zones`},
	} {
		t.Run(name, func(t *testing.T) {
			azure := azureWith(t, `"securityGroupName": "nsg"`, `"securityGroupName": "nsg"`+tt.now)
			p, err := withNetwork(t, newCloudWith(t, tt.opts, nil)).plan(t, azure, fmt.Sprintf(someService, "web", ", annotations: {"+tt.annotations+"}"))
			if err != nil {
				t.Fatal(err)
			}
			text, raw := p.FormatText(false), ""
			if out, err := p.FormatJSON(); err == nil {
				raw = string(out)
			}
			if !strings.Contains(text, tt.text) || !strings.Contains(raw, tt.json) || strings.Contains(text, "zones:") != (tt.text != "") {
				t.Errorf("want %q:\n%s", tt.text, text)
			}
			if !strings.Contains(p.Services[0].Refused, tt.refused) || (p.Services[0].Refused != "") != (tt.refused != "") || (p.Changes == 0) != (tt.refused != "") {
				t.Errorf("refused is %q, want %q; %d changes", p.Services[0].Refused, tt.refused, p.Changes)
			}
			if strings.Contains(text, "Note: the availability zones of eastus are not known") != tt.note {
				t.Errorf("note: want %t:\n%s", tt.note, text)
			}
		})
	}
}

// What another controller has made keeps its zones, or none, in a region that has zones, which are not even read.
func TestAnAdoptionKeepsZones(t *testing.T) {
	var resources []resource
	if err := json.Unmarshal([]byte(readFile(t, adoption+"resources.json")), &resources); err != nil {
		t.Fatal(err)
	}
	for _, strips := range []bool{false, true} {
		before := 0
		for _, r := range resources {
			parts := []any{r.Body}
			properties, _ := r.Body["properties"].(map[string]any)
			frontends, _ := properties["frontendIPConfigurations"].([]any)
			for _, part := range append(parts, frontends...) {
				body := part.(map[string]any)
				if body["zones"] != nil {
					before++
				}
				if strips {
					delete(body, "zones")
				}
			}
		}
		raw, err := json.Marshal(resources)
		if err != nil || before == 0 {
			t.Fatal(err, before)
		}
		c := newCloudWith(t, armemu.Options{Seed: 1, Zones: []string{"1", "2", "3"}}, raw)
		p, err := c.plan(t, adoption+"azure.json", readFile(t, adoption+"services.yaml"), withoutClass)
		if err != nil || len(p.Resources) > len(meant) || strings.Contains(p.FormatText(false), "zones") {
			t.Errorf("without zones %t: %v\n%s", strips, err, p.FormatText(false))
		}
		if reads := c.Calls(func(call armemu.Call) bool { return strings.HasSuffix(call.Path, "/locations") }); len(reads) > 0 {
			t.Errorf("the zones were read %d times", len(reads))
		}
	}
}
