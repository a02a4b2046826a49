// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// flowHistory starts when the first node dies: before that no flow can be misdirected.
type flowHistory struct {
	nodes map[netip.Addr]nodeLife
	rules map[string][]ruleVersion // by lower-cased ID
}

// RuleFlows describes new flows of a load balancing rule.
type RuleFlows struct {
	Rule      string         `json:"rule"`
	Frontend  string         `json:"frontend"`
	Probe     string         `json:"probe,omitempty"`
	Addresses []AddressFlows `json:"addresses"`
	// MisdirectedSeconds is the dead share of the addresses receiving new flows, integrated over
	// time: one of four for three seconds is 0.75.
	MisdirectedSeconds float64 `json:"misdirectedSeconds"`
	// UnservedSeconds is the time without any such address.
	UnservedSeconds float64 `json:"unservedSeconds"`
}

// AddressFlows describes new flows to an address of a rule's pool.
type AddressFlows struct {
	Pool string `json:"pool"` // name
	Name string `json:"name"`
	// IP is empty for an unmodeled network interface.
	IP         string `json:"ip,omitempty"`
	AdminState string `json:"adminState"`
	Alive      bool   `json:"alive"`
	// ProbedUp ignores the admin state; true without a probe.
	ProbedUp      bool `json:"probedUp"`
	TakesNewFlows bool `json:"takesNewFlows"`
}

// SetAlive marks the node with this IP address as dead or recovered.
func (e *Emulator) SetAlive(ip netip.Addr, alive bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.finishDue(now)
	if e.flows == nil {
		if alive {
			return
		}
		e.flows = e.newFlowHistory(now)
	}
	ip = ip.Unmap()
	if e.flows.nodes[ip].isAlive(now) != alive {
		e.flows.nodes[ip] = append(e.flows.nodes[ip], nodeChange{now, alive})
	}
}

// ResetFlows marks all nodes as alive and clears the history.
func (e *Emulator) ResetFlows() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flows = nil
}

// Flows returns where new flows go at time to, and the misdirected flows since from. Deleted rules
// are included if they misdirected flows.
func (e *Emulator) Flows(from, to time.Time) []RuleFlows {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finishDue(time.Now())
	h := e.flows
	if h == nil {
		h = e.newFlowHistory(to)
	}
	flows := []RuleFlows{}
	for _, key := range slices.Sorted(maps.Keys(h.rules)) {
		versions := h.rules[key]
		sum := sumFlows(versions, h.nodes, from, to)
		rule := ruleAt(versions, to)
		gone := rule == nil
		if gone && sum.misdirected == 0 {
			continue
		}
		if gone {
			rule = &flowRule{id: versions[0].rule.id}
		}
		shown := rule.toRuleFlows(h.nodes, to)
		shown.MisdirectedSeconds, shown.UnservedSeconds = sum.misdirected, sum.unserved
		flows = append(flows, shown)
	}
	return flows
}

func (r *flowRule) toRuleFlows(lives map[netip.Addr]nodeLife, t time.Time) RuleFlows {
	nodes := r.nodeLives(lives)
	shown := RuleFlows{Rule: r.id, Frontend: r.frontend, Probe: r.probeID, Addresses: []AddressFlows{}}
	for i, takes := range r.acceptsNewFlows(nodes, t) {
		a := r.addresses[i]
		entry := AddressFlows{
			Pool: a.pool, Name: a.name, AdminState: cmp.Or(a.adminState, "None"), TakesNewFlows: takes,
			Alive: nodes[i].isAlive(t), ProbedUp: r.probe == nil || r.probe.isUp(nodes[i], t),
		}
		if a.ip.IsValid() {
			entry.IP = a.ip.String()
		}
		shown.Addresses = append(shown.Addresses, entry)
	}
	return shown
}

func (e *Emulator) newFlowHistory(now time.Time) *flowHistory {
	h := &flowHistory{nodes: map[netip.Addr]nodeLife{}, rules: map[string][]ruleVersion{}}
	h.replaceRules("/", e.allFlowRules(), now)
	return h
}

func (e *Emulator) allFlowRules() []*flowRule {
	var rules []*flowRule
	for _, agg := range e.sortedAggregates() {
		rules = append(rules, e.flowRules(agg, "")...)
	}
	return rules
}

// updateDataPlane takes effect at once: flows always match what GET shows.
func (e *Emulator) updateDataPlane(id resourceID, at time.Time) {
	switch {
	case e.flows == nil:
	case id.child == poolKind: // frequent, and never changes the set of rules
		e.flows.recordRules(e.flowRules(e.aggregates[id.rootKey()], id.key()), at)
	case id.root == loadBalancerKind:
		e.flows.replaceRules(id.rootKey()+"/", e.flowRules(e.aggregates[id.rootKey()], ""), at)
	case id.root == networkInterfaceKind || id.root == instanceKind || id.root == scaleSetKind: // may affect any pool
		e.flows.replaceRules("/", e.allFlowRules(), at)
	}
}

func (h *flowHistory) replaceRules(under string, rules []*flowRule, at time.Time) {
	present := map[string]bool{}
	for _, r := range rules {
		present[strings.ToLower(r.id)] = true
	}
	for key := range h.rules {
		if strings.HasPrefix(key, under) && !present[key] {
			h.recordVersion(key, nil, at)
		}
	}
	h.recordRules(rules, at)
}

func (h *flowHistory) recordRules(rules []*flowRule, at time.Time) {
	for _, r := range rules {
		h.recordVersion(strings.ToLower(r.id), r, at)
	}
}

func (h *flowHistory) recordVersion(key string, rule *flowRule, at time.Time) {
	versions := h.rules[key]
	if n := len(versions); n == 0 || !rule.equalRule(versions[n-1].rule) {
		h.rules[key] = append(versions, ruleVersion{at, rule})
	}
}

func (e *Emulator) flowRules(agg *aggregate, pool string) []*flowRule {
	if agg == nil || agg.id.root != loadBalancerKind {
		return nil
	}
	held := map[string][]flowAddress{}
	var rules []*flowRule
	for _, r := range objectList(propertyFields(agg.body), lbRules) {
		of := rulePools(propertyFields(r))
		if pool != "" && !slices.Contains(of, pool) {
			continue
		}
		rule := &flowRule{
			id:       agg.id.withChild(agg.id.root.findChild(lbRules), stringField(r, "name")).String(),
			frontend: stringField(objectField(propertyFields(r), "frontendIPConfiguration"), "id"),
		}
		rule.probeID, rule.probe = agg.probeOf(propertyFields(r))
		for _, key := range of {
			if _, read := held[key]; !read {
				held[key] = e.poolAddresses(agg, key)
			}
			rule.addresses = append(rule.addresses, held[key]...)
		}
		rules = append(rules, rule)
	}
	return rules
}

func (e *Emulator) poolAddresses(agg *aggregate, key string) []flowAddress {
	id, err := parseID(key)
	if err != nil || id.child != poolKind || id.rootKey() != agg.id.key() || !agg.hasResource(id) {
		return nil
	}
	pool := findChild(agg.body, id)
	var held []flowAddress
	for _, entry := range poolEntries(e.references(), id, pool) {
		held = append(held, flowAddress{
			pool: stringField(pool, "name"), name: stringField(entry, "name"), ip: e.entryIP(entry), adminState: stringField(propertyFields(entry), adminState),
		})
	}
	return held
}

func (a *aggregate) probeOf(rule fields) (string, *flowProbe) {
	id := stringField(objectField(rule, "probe"), "id")
	kind := a.id.root.findChild(lbProbes)
	for _, probe := range objectList(propertyFields(a.body), lbProbes) {
		if sameName(a.id.withChild(kind, stringField(probe, "name")).String(), id) {
			return id, parseProbe(propertyFields(probe))
		}
	}
	return "", nil
}

func parseProbe(props fields) *flowProbe {
	interval, given := intField(props, "intervalInSeconds")
	if !given {
		interval = 15
	}
	threshold, given := intField(props, "probeThreshold")
	if !given {
		threshold = 1
	}
	const maxSetting = 10_000 // far beyond Azure's limit; prevents overflow
	return &flowProbe{
		interval: time.Duration(min(interval, maxSetting)) * time.Second, threshold: min(threshold, maxSetting),
		allUp: sameName(stringField(props, "noHealthyBackendsBehavior"), "AllProbedUp"),
	}
}

type probeReport struct {
	IP    string `json:"ip"`
	Alive *bool  `json:"alive"`
}

func (e *Emulator) reportProbe(body []byte) error {
	var report probeReport
	if err := decodeStrict(body, &report); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	ip, err := netip.ParseAddr(report.IP)
	if err != nil || ip.Zone() != "" {
		return fmt.Errorf("probe: ip %q is not an IP address", report.IP)
	}
	if report.Alive == nil {
		return fmt.Errorf("probe: say whether %s is alive: true or false", ip)
	}
	e.SetAlive(ip, *report.Alive)
	return nil
}
