// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/netip"
	"strings"
	"time"
)

// ForwardingRule is a load balancing rule with what its packets need: lab/dataplane forwards by it.
type ForwardingRule struct {
	Rule string `json:"rule"`
	// Frontend is the address of the frontend.
	Frontend netip.Addr `json:"frontend"`
	Protocol string     `json:"protocol"` // Tcp, Udp or All
	Port     int        `json:"port"`
	// BackendPort is the port of the members. With a floating IP, packets retain the frontend's address as destination.
	BackendPort int    `json:"backendPort"`
	FloatingIP  bool   `json:"floatingIP,omitempty"`
	LoadBalance string `json:"loadDistribution"`
	// Probe is nil if the rule has none.
	Probe   *ForwardingProbe   `json:"probe,omitempty"`
	Members []ForwardingMember `json:"members"`
}

// ForwardingProbe is the health probe of a rule.
type ForwardingProbe struct {
	ID        string        `json:"id"`
	Protocol  string        `json:"protocol"` // Tcp, Http or Https
	Port      int           `json:"port"`
	Path      string        `json:"path,omitempty"`
	Interval  time.Duration `json:"intervalNanoseconds"`
	Threshold int           `json:"threshold"`
	// AllUp sends new flows to all members if every member is probed down.
	AllUp bool `json:"allUp,omitempty"`
}

// ForwardingMember is an address in a pool of a rule.
type ForwardingMember struct {
	Name       string     `json:"name"`
	IP         netip.Addr `json:"ip"` // invalid if unknown
	AdminState string     `json:"adminState,omitempty"`
}

// TakesNewFlows returns for each member whether it takes new flows, given its probe's result.
func (r *ForwardingRule) TakesNewFlows(isProbedUp func(member int) bool) []bool {
	states := make([]string, len(r.Members))
	for i := range r.Members {
		states[i] = r.Members[i].AdminState
	}
	return acceptNewFlows(states, r.Probe != nil, r.Probe != nil && r.Probe.AllUp, isProbedUp)
}

// ForwardingRules returns the load balancing rules with an address, as GET shows them now.
func (e *Emulator) ForwardingRules() []ForwardingRule {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	rules := []ForwardingRule{}
	for _, agg := range e.sortedAggregates() {
		flows := e.flowRules(agg, "")
		if len(flows) == 0 {
			continue
		}
		frontends := e.frontendAddresses(agg)
		for i, r := range objectList(propertyFields(agg.body), lbRules) {
			if ip := frontends[strings.ToLower(flows[i].frontend)]; ip.IsValid() {
				rules = append(rules, agg.forwardingRule(propertyFields(r), flows[i], ip))
			}
		}
	}
	return rules
}

func (a *aggregate) forwardingRule(props fields, flow *flowRule, frontend netip.Addr) ForwardingRule {
	port, _ := intField(props, "frontendPort")
	backendPort, _ := intField(props, "backendPort")
	floating, _ := props["enableFloatingIP"].(bool)
	rule := ForwardingRule{
		Rule: flow.id, Frontend: frontend, Protocol: stringField(props, "protocol"), Port: port, BackendPort: backendPort,
		FloatingIP: floating, LoadBalance: stringField(props, "loadDistribution"), Members: []ForwardingMember{},
	}
	if flow.probe != nil {
		rule.Probe = a.forwardingProbe(flow)
	}
	for _, m := range flow.addresses {
		rule.Members = append(rule.Members, ForwardingMember{Name: m.name, IP: m.ip, AdminState: m.adminState})
	}
	return rule
}

func (a *aggregate) forwardingProbe(flow *flowRule) *ForwardingProbe {
	probe := &ForwardingProbe{ID: flow.probeID, Interval: flow.probe.interval, Threshold: flow.probe.threshold, AllUp: flow.probe.allUp}
	name := flow.probeID[strings.LastIndex(flow.probeID, "/")+1:]
	for _, p := range objectList(propertyFields(a.body), lbProbes) {
		if sameName(stringField(p, "name"), name) {
			props := propertyFields(p)
			probe.Protocol, probe.Path = stringField(props, "protocol"), stringField(props, "requestPath")
			probe.Port, _ = intField(props, "port")
		}
	}
	return probe
}

// frontendAddresses returns the addresses of a load balancer's frontends by lower-cased ID.
func (e *Emulator) frontendAddresses(agg *aggregate) map[string]netip.Addr {
	found := map[string]netip.Addr{}
	for _, f := range objectList(propertyFields(agg.body), frontends) {
		props := propertyFields(f)
		text := stringField(props, "privateIPAddress")
		if public := e.aggregates[referenceID(props, "publicIPAddress")]; public != nil {
			text = stringField(propertyFields(public.body), "ipAddress")
		}
		if ip, err := netip.ParseAddr(text); err == nil {
			found[agg.id.withChild(frontendKind, stringField(f, "name")).key()] = ip
		}
	}
	return found
}
