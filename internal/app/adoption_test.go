// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/test/referencepage"
)

const adoption = "testdata/adoption/"

// meant lists the intended differences, by kind and name, and why they drop no connection. The adoption page
// shows them.
var meant = map[string]string{}

// withoutClass plans for the Services that cloud-provider-azure serves.
func withoutClass(o *PlanOptions) { o.LoadBalancerClass = "" }

// Taking over a cluster from cloud-provider-azure changes only the intended differences in Azure.
func TestAnAdoptionChangesNothing(t *testing.T) {
	resources := []byte(readFile(t, adoption+"resources.json"))
	c := newCloud(t, resources)
	p, err := c.plan(t, adoption+"azure.json", readFile(t, adoption+"services.yaml"), withoutClass)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range p.Resources {
		for _, name := range append(partsOf(r.Parts, func(k, n string) string { return k + " " + n }), r.Kind+" "+r.Name) {
			seen[name] = true
		}
	}
	if len(p.Resources) > 0 && len(meant) == 0 {
		t.Errorf("Weir would change what the Azure cloud provider made:\n%s", p.FormatText(false))
	}
	for name := range seen {
		if meant[name] == "" {
			t.Errorf("%s would change, and nothing says why it may", name)
		}
	}
	for name := range meant {
		if !seen[name] {
			t.Errorf("%s is said to change, and does not", name)
		}
	}
	for _, s := range p.Services {
		if s.Refused != "" {
			t.Errorf("Service %s is refused: %s", s.Service, s.Refused)
		}
	}
	referencepage.ExpectSection(t, "../../docs/guide/moving-from-cloud-provider-azure.md", "compared", inventoryOf(t, resources, p.Changes)+meantTable())
	referencepage.ExpectFile(t, adoption+"plan.txt", p.FormatText(false))
}

func partsOf[T any](parts []T, name func(kind, name string) string) []string {
	var names []string
	for _, p := range parts {
		raw, _ := json.Marshal(p) //nolint:errchkjson // a part has strings alone
		var part struct{ Kind, Name string }
		_ = json.Unmarshal(raw, &part)
		names = append(names, name(part.Kind, part.Name))
	}
	return names
}

// inventoryOf counts what was compared.
func inventoryOf(t *testing.T, snapshot []byte, changes int) string {
	t.Helper()
	var resources []resource
	if err := json.Unmarshal(snapshot, &resources); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range resources {
		properties := at(t, r.Body, "properties")
		switch {
		case strings.Contains(r.ID, "/backendAddressPools/"):
			count["pools"]++
			members, _ := properties["loadBalancerBackendAddresses"].([]any)
			count["members of pools"] += len(members)
		case strings.Contains(r.ID, "/loadBalancers/"):
			count["load balancers"]++
			for name, key := range map[string]string{"frontends": "frontendIPConfigurations", "rules": "loadBalancingRules", "health probes": "probes"} {
				parts, _ := properties[key].([]any)
				count[name] += len(parts)
			}
		case strings.Contains(r.ID, "/publicIPAddresses/"):
			count["public IPs"]++
		case strings.Contains(r.ID, "/networkSecurityGroups/"):
			rules, _ := properties["securityRules"].([]any)
			count["security rules"] += len(rules)
		}
	}
	var out strings.Builder
	out.WriteString("\n| what the Azure cloud provider made | there are |\n|---|---|\n")
	for _, name := range []string{"load balancers", "frontends", "rules", "health probes", "pools", "members of pools", "public IPs", "security rules"} {
		fmt.Fprintf(&out, "| %s | %d |\n", name, count[name])
	}
	fmt.Fprintf(&out, "\nResources that Weir would change: %d.\n", changes)
	return out.String()
}

func meantTable() string {
	if len(meant) == 0 {
		return "\nNo difference is meant.\n\n"
	}
	var rows []string
	for name, reason := range meant {
		rows = append(rows, "| "+name+" | "+reason+" |\n")
	}
	slices.Sort(rows)
	return "\n| differs | why, and what becomes of connections |\n|---|---|\n" + strings.Join(rows, "") + "\n"
}

// Files with Services only do not define pool members, so the plan removes none.
func TestAnAdoptionOfServicesAlone(t *testing.T) {
	var services []string
	for _, doc := range strings.Split(readFile(t, adoption+"services.yaml"), "\n---\n") {
		if strings.Contains(doc, "\nkind: Service\n") {
			services = append(services, doc)
		}
	}
	c := newCloud(t, []byte(readFile(t, adoption+"resources.json")))
	p, err := c.plan(t, adoption+"azure.json", strings.Join(services, "\n---\n"), withoutClass)
	if err != nil {
		t.Fatal(err)
	}
	if len(services) != 20 || p.Changes > 0 || len(p.Notes) != 1 {
		t.Errorf("%d Services:\n%s", len(services), p.FormatText(false))
	}
}

// Security rules have the names that cloud-provider-azure uses, so it can take them back.
func TestAnAdoptionNamesSecurityRulesAlike(t *testing.T) {
	var names []string
	snapshot := tampered(t, []byte(readFile(t, adoption+"resources.json")), "/networkSecurityGroups/nsg", func(body map[string]any) bool {
		rules, _ := at(t, body, "properties")["securityRules"].([]any)
		for _, rule := range rules {
			if rule, ok := rule.(map[string]any); ok {
				names = append(names, fmt.Sprint("securityRule ", rule["name"]))
			}
		}
		at(t, body, "properties")["securityRules"] = []any{}
		return true
	})
	p, err := newCloud(t, snapshot).plan(t, adoption+"azure.json", readFile(t, adoption+"services.yaml"), withoutClass)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Resources) != 1 {
		t.Fatalf("the plan is\n%s", p.FormatText(false))
	}
	got := partsOf(p.Resources[0].Parts, func(k, n string) string { return k + " " + n })
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("the rules are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(names, "\n"))
	}
}

// A plan without the class flag explains that it selects no Service.
func TestAnAdoptionWithoutItsFlag(t *testing.T) {
	p, err := newCloud(t, []byte(readFile(t, adoption+"resources.json"))).plan(t, adoption+"azure.json", readFile(t, adoption+"services.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Notes) != 1 || !strings.HasPrefix(p.Notes[0], `20 Services of type LoadBalancer passed over: those of class "weir.dev/azure" are planned; --load-balancer-class="" plans those without a class`) {
		t.Errorf("notes %q", p.Notes)
	}
}

// The plan reports every difference, but no foreign resources.
func TestAdoptionReportsDifferences(t *testing.T) {
	const (
		cluster = "a11b146a9e7f5460cabe5a353797607f"
		rule    = cluster + "-TCP-80"
	)
	properties := func(body map[string]any, list string) []any {
		items, _ := at(t, body, "properties")[list].([]any)
		return items
	}
	set := func(list, name, key string, value any) func(map[string]any) bool {
		return func(body map[string]any) bool {
			at(t, properties(body, list), name, "properties")[key] = value
			return true
		}
	}
	without := func(list string, drop func(item map[string]any) bool) func(map[string]any) bool {
		return func(body map[string]any) bool {
			at(t, body, "properties")[list] = slices.DeleteFunc(properties(body, list), func(item any) bool {
				m, _ := item.(map[string]any)
				return drop(m)
			})
			return true
		}
	}
	named := func(name string) func(map[string]any) bool {
		return func(item map[string]any) bool { return item["name"] == name }
	}
	const lbOf, addresses, group = "/loadBalancers/kubernetes", "loadBalancerBackendAddresses", "/networkSecurityGroups/nsg"
	tests := []struct {
		name   string
		suffix string
		edit   func(map[string]any) bool
	}{
		{"a rule has another idle timeout", lbOf, set("loadBalancingRules", rule, "idleTimeoutInMinutes", 30)},
		{"a rule has no floating IP", lbOf, set("loadBalancingRules", rule, "enableFloatingIP", false)},
		{"a rule is missing", lbOf, without("loadBalancingRules", named(rule))},
		{"a probe asks another port", lbOf, set("probes", rule, "port", 4711)},
		{"a rule of the Service for a port that it has not", lbOf, func(body map[string]any) bool {
			got := at(t, properties(body, "loadBalancingRules"), rule)
			raw, _ := json.Marshal(got) //nolint:errchkjson // it was read from JSON
			raw = []byte(strings.NewReplacer("TCP-80\"", "TCP-81\"", `"frontendPort":80`, `"frontendPort":81`, `"backendPort":80`, `"backendPort":81`).Replace(string(raw)))
			var more map[string]any
			if err := json.Unmarshal(raw, &more); err != nil {
				t.Fatal(err)
			}
			at(t, more, "properties")["probe"] = nil
			at(t, body, "properties")["loadBalancingRules"] = append(properties(body, "loadBalancingRules"), more)
			return true
		}},
		{"a probe of another owner", lbOf, func(body map[string]any) bool {
			at(t, body, "properties")["probes"] = append(properties(body, "probes"), map[string]any{
				"name": "somebodys", "properties": map[string]any{"protocol": "Tcp", "port": 22, "intervalInSeconds": 5, "probeThreshold": 2},
			})
			return true
		}},
		{"a node is missing in the pool of nodes", lbOf + "/backendAddressPools/kubernetes", without(addresses, named("node-2"))},
		{"a node too many in a Service's own pool", "/loadBalancers/lb-1/backendAddressPools/default-local", func(body map[string]any) bool {
			at(t, body, "properties")[addresses] = append(properties(body, addresses), map[string]any{
				"name": "node-9", "properties": map[string]any{"ipAddress": "10.1.0.99"},
			})
			return true
		}},
		{"a public IP has another tag", "/publicIPAddresses/kubernetes-" + cluster, func(body map[string]any) bool {
			at(t, body, "tags")["k8s-azure-service"] = "default/somebody"
			return true
		}},
		{"a security rule does not let the Service in", group, set("securityRules", "k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77", "destinationAddressPrefixes", []any{"20.0.0.7"})},
		{"a security rule of another owner", group, func(body map[string]any) bool {
			at(t, body, "properties")["securityRules"] = append(properties(body, "securityRules"), map[string]any{
				"name": "ssh", "properties": map[string]any{
					"priority": 100, "direction": "Inbound", "access": "Deny", "protocol": "Tcp", "sourceAddressPrefix": "*",
					"sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "22",
				},
			})
			return true
		}},
		{"an internal frontend is missing", "/loadBalancers/lb-1-internal", func(map[string]any) bool { return false }},
	}
	texts := make([]string, len(tests))
	t.Run("plans", func(t *testing.T) {
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				snapshot := []byte(readFile(t, adoption+"resources.json"))
				if strings.HasSuffix(tt.suffix, "lb-1-internal") {
					snapshot = tampered(t, snapshot, tt.suffix+"/backendAddressPools/kubernetes", func(map[string]any) bool { return false })
				}
				p, err := newCloud(t, tampered(t, snapshot, tt.suffix, tt.edit)).plan(t, adoption+"azure.json", readFile(t, adoption+"services.yaml"), withoutClass)
				if err != nil {
					t.Fatal(err)
				}
				for i := range p.Services {
					p.Services[i].Note = ""
				}
				texts[i] = fmt.Sprintf("=== %s\n%s\n", tt.name, p.FormatText(false))
			})
		}
	})
	referencepage.ExpectFile(t, adoption+"differs.txt", strings.Join(texts, ""))
}
