// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// A flow is an established connection through a load balancer. It ends when any of these parts
// disappears. Renaming a rule also ends it, which is the stricter interpretation.
type flow struct {
	rule            string // its id
	address         string // of the frontend
	protocol        string
	port            int
	floating        bool
	member, backend string // the pool's id, and the address in it
	backendPort     int
}

func (f flow) String() string {
	return fmt.Sprintf("%s %s:%d to %s:%d (%s)", f.protocol, f.address, f.port, f.backend, f.backendPort, f.rule[strings.LastIndex(f.rule, "/")+1:])
}

// connections holds the maximum set of open connections: one per path through a load balancer.
type connections struct {
	open    map[flow]bool
	dropped []flow
}

// update drops connections that became impossible and opens one where a new one is accepted.
func (c *connections) update(possible map[flow]bool, takes map[string]bool) {
	if c.open == nil {
		c.open = map[flow]bool{}
	}
	for f := range c.open {
		if !possible[f] {
			c.dropped = append(c.dropped, f)
			delete(c.open, f)
		}
	}
	for f := range possible {
		if takes[flowTarget(f.rule, f.backend)] {
			c.open[f] = true
		}
	}
}

func flowTarget(rule, ip string) string { return strings.ToLower(rule) + " " + ip }

// flowTargets returns the addresses to which each rule sends new flows.
func flowTargets(rules []armemu.RuleFlows) map[string]bool {
	takes := map[string]bool{}
	for _, r := range rules {
		for _, a := range r.Addresses {
			if a.TakesNewFlows {
				takes[flowTarget(r.Rule, a.IP)] = true
			}
		}
	}
	return takes
}

// ruleMembers returns the addresses in the pool of each rule, including those of network interfaces.
func ruleMembers(rules []armemu.RuleFlows) map[string][]string {
	members := map[string][]string{}
	for _, r := range rules {
		for _, a := range r.Addresses {
			members[strings.ToLower(r.Rule)] = append(members[strings.ToLower(r.Rule)], a.IP)
		}
	}
	return members
}

// namedResource is an Azure resource that others reference.
type namedResource struct {
	ID         string `json:"id"`
	Properties struct {
		IPAddress        string         `json:"ipAddress"`
		PrivateIPAddress string         `json:"privateIPAddress"`
		PublicIPAddress  *namedResource `json:"publicIPAddress"`

		Frontends []namedResource `json:"frontendIPConfigurations"`
		Rules     []namedResource `json:"loadBalancingRules"`

		Frontend     struct{ ID string } `json:"frontendIPConfiguration"`
		Pool         struct{ ID string } `json:"backendAddressPool"`
		Protocol     string              `json:"protocol"`
		FrontendPort int                 `json:"frontendPort"`
		BackendPort  int                 `json:"backendPort"`
		Floating     bool                `json:"enableFloatingIP"`
	} `json:"properties"`
}

// possibleFlows returns the possible connections with these resources and rule members.
func possibleFlows(snapshot []byte, members map[string][]string) map[flow]bool {
	var resources []struct{ Body namedResource }
	if err := json.Unmarshal(snapshot, &resources); err != nil {
		panic(err)
	}
	public := map[string]string{}
	for _, r := range resources {
		public[strings.ToLower(r.Body.ID)] = r.Body.Properties.IPAddress
	}
	flows := map[flow]bool{}
	for _, r := range resources {
		for _, rule := range r.Body.Properties.Rules {
			if rule.Properties.Protocol != "" { // a pool only references its rules
				addRuleFlows(r.Body, rule, public, members[strings.ToLower(rule.ID)], flows)
			}
		}
	}
	return flows
}

// addRuleFlows adds the connections of one rule.
func addRuleFlows(balancer, rule namedResource, public map[string]string, members []string, flows map[flow]bool) {
	p := rule.Properties
	f := flow{rule: rule.ID, protocol: p.Protocol, port: p.FrontendPort, backendPort: p.BackendPort, floating: p.Floating}
	for _, frontend := range balancer.Properties.Frontends {
		if strings.EqualFold(frontend.ID, p.Frontend.ID) {
			f.address = frontend.Properties.PrivateIPAddress
			if ip := frontend.Properties.PublicIPAddress; ip != nil {
				f.address = public[strings.ToLower(ip.ID)]
			}
		}
	}
	if f.address == "" {
		return
	}
	for _, f.backend = range members {
		f.member = p.Pool.ID
		flows[f] = true
	}
}

// The counter detects every way to drop a connection, and reports no others.
func TestDroppedConnectionsAreCounted(t *testing.T) {
	const (
		of       = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Network/"
		balancer = of + "loadBalancers/kubernetes"
		owner    = "ae889c02335294bdcb496e61e2a6bf69" // Service shop/local: two ports on two nodes
	)
	edits := []struct {
		name, id string
		from, to string
		want     int
	}{
		{"another idle timeout", balancer, `"idleTimeoutInMinutes":4`, `"idleTimeoutInMinutes":9`, 0},
		{"another probe", balancer, `"intervalInSeconds":5`, `"intervalInSeconds":15`, 0},
		{"a rule for another port", balancer, `"frontendPort":443`, `"frontendPort":444`, 2},
		{"a rule with another name", balancer, owner + `-TCP-443"`, owner + `-TCP-444"`, 2},
		{"a rule without floating IP", balancer, `"enableFloatingIP":true`, `"enableFloatingIP":false`, -1},
		{"a member that leaves", balancer, `"ipAddress":"10.1.0.10"`, `"ipAddress":"10.1.0.99"`, -1},
		{"another public IP", balancer, "publicIPAddresses/kubernetes-" + owner, "publicIPAddresses/pip-unused", 4},
		{"another address of the public IP", of + "publicIPAddresses/kubernetes-" + owner, `"ipAddress":"20.0.0.6"`, `"ipAddress":"20.0.0.66"`, 4},
	}
	for _, e := range edits {
		c := newCloud(t, ofAddresses, shipped.AzureRole())
		if err := c.Put(of+"publicIPAddresses/pip-unused", []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)); err != nil {
			t.Fatal(err)
		}
		c.updateConnections()
		open := len(c.connections.open)
		body, ok := c.Get(e.id)
		next := strings.ReplaceAll(string(body), e.from, e.to)
		if !ok || open == 0 || next == string(body) {
			t.Fatalf("%s: nothing to edit in %s\n%s", e.name, e.id, body)
		}
		if err := c.Put(e.id, []byte(next)); err != nil {
			t.Fatal(err)
		}
		c.updateConnections()
		dropped, remaining := c.takeDropped()
		if ok := len(dropped) == e.want || e.want < 0 && len(dropped) > 0; !ok {
			slices.SortFunc(dropped, func(a, b flow) int { return strings.Compare(a.String(), b.String()) })
			t.Errorf("%s: %d of %d connections dropped, want %d: %v", e.name, len(dropped), open, e.want, dropped)
		}
		if remaining == 0 {
			t.Errorf("%s: none is open afterwards", e.name)
		}
	}
}
