// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ruleHealth is the operation that reads the health of a load balancing rule; it changes nothing.
var ruleHealth = &action{name: "health", permission: "health", latency: latencyRange{2, 4, 5}}

// Reasons of a member's health, as documented.
const (
	healthUp         = "Up_Probe_Success"
	healthAllUp      = "Up_Probe_AllDownIsUp"
	healthAdminUp    = "Up_Admin"
	healthAdminDown  = "Down_Admin"
	healthBadStatus  = "Down_Probe_HttpStatusCodeError"
	healthNoAnswer   = "Down_Probe_HttpEndpointUnreachable"
	healthTCPTimeout = "Down_Probe_TcpProbeTimeout"
)

var healthReasons = []string{
	healthUp, healthAllUp, healthAdminUp, healthAdminDown, healthBadStatus, healthNoAnswer, healthTCPTimeout,
	"Down_Probe_HttpNoResponse", "Down_Platform", "NA",
}

// healthKey identifies the target of a probe: a port of an address.
type healthKey struct {
	ip   netip.Addr
	port int
}

// SetHealth sets the reason that Azure's health reports for a probe of an address, e.g. Down_Probe_HttpStatusCodeError. An
// empty reason removes it. Without one, health follows ReportHealth and then SetAlive.
func (e *Emulator) SetHealth(ip netip.Addr, port int, reason string) error {
	if reason != "" && !slices.Contains(healthReasons, reason) {
		return fmt.Errorf("health: reason %q: use one of %s", reason, strings.Join(healthReasons, ", "))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := healthKey{ip.Unmap(), port}
	if reason == "" {
		delete(e.health, key)
		return nil
	}
	if e.health == nil {
		e.health = map[healthKey]string{}
	}
	e.health[key] = reason
	return nil
}

// ReportHealth makes health follow the probes of a data plane. answer must not use the Emulator; known is false for a
// member that is not probed.
func (e *Emulator) ReportHealth(answer func(probe ForwardingProbe, member netip.Addr) (up, known bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.probed = answer
}

type healthReport struct {
	IP     string `json:"ip"`
	Port   int    `json:"port"`
	Reason string `json:"reason"`
}

func (e *Emulator) reportHealth(body []byte) error {
	var report healthReport
	if err := decodeStrict(body, &report); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	ip, err := netip.ParseAddr(report.IP)
	if err != nil || ip.Zone() != "" {
		return fmt.Errorf("health: ip %q is not an IP address", report.IP)
	}
	if report.Port < 1 || report.Port > 65535 {
		return errors.New("health: port: want the port of a probe")
	}
	return e.SetHealth(ip, report.Port, report.Reason)
}

// acceptHealth starts reading the health of a rule.
func (e *Emulator) acceptHealth(x *exchange) *Problem {
	id := x.route.id
	agg := e.aggregates[id.rootKey()]
	if !agg.hasResource(id) {
		return notFound("NotFound", fmt.Sprintf("Resource %s not found.", id))
	}
	rule := propertyFields(findChild(agg.body, id))
	if _, probe := agg.probeOf(rule); probe == nil {
		return badRequest("LoadBalancingRuleHasNoProbe", fmt.Sprintf("The health of load balancing rule %s cannot be read because it has no health probe.", id))
	}
	op := &operation{
		id: e.newGUID(), name: "PostLoadBalancingRuleHealthOperation", target: id, status: opSucceeded, isHealth: true,
		pollAfter: e.pollInterval(id, KindAction, false, nil),
	}
	if f := x.fault; f != nil {
		op.stuck, op.pollFault = f.Operation.isStuck(), f.copyPollFault()
	}
	op.query = urlSignature(network, op.id)
	op.latency = e.sampleLatency(ruleHealth.latency)
	op.deadline = x.now.Add(op.latency)
	e.addOperation(op)
	x.call.Operation = op.id
	x.header.Set("Location", operationURL(x, op, "operationResults"))
	x.header.Set("Retry-After", wholeSeconds(op.pollAfter))
	x.status = http.StatusAccepted
	return nil
}

// pollHealth answers 202 until the health is known, then 200 with it.
func (e *Emulator) pollHealth(x *exchange, op *operation) *Problem {
	if op.stuck || x.now.Before(op.deadline) {
		x.status = http.StatusAccepted
		x.header.Set("Location", operationURL(x, op, "operationResults"))
		x.header.Set("Retry-After", wholeSeconds(op.pollAfter))
		return nil
	}
	agg := e.aggregates[op.target.rootKey()]
	if agg == nil || !agg.hasResource(op.target) {
		return notFound("NotFound", fmt.Sprintf("Resource %s not found.", op.target))
	}
	x.status, x.body = http.StatusOK, e.ruleHealth(agg, op.target, x.now)
	return nil
}

func (e *Emulator) ruleHealth(agg *aggregate, id resourceID, now time.Time) fields {
	up, members := 0, []any{}
	for _, flow := range e.flowRules(agg, "") {
		if !sameName(flow.id, id.String()) || flow.probe == nil {
			continue
		}
		probe := agg.forwardingProbe(flow)
		reasons := make([]string, len(flow.addresses))
		anyUp := false
		for i, a := range flow.addresses {
			reasons[i] = e.memberHealth(probe, a, now)
			anyUp = anyUp || strings.HasPrefix(reasons[i], "Up")
		}
		for i, a := range flow.addresses {
			if probe.AllUp && !anyUp && reasons[i] != healthAdminDown {
				reasons[i] = healthAllUp
			}
			state := "Down"
			if strings.HasPrefix(reasons[i], "Up") {
				state, up = "Up", up+1
			}
			entry := fields{"state": state, "reason": reasons[i]}
			if a.ip.IsValid() {
				entry["ipAddress"] = a.ip.String()
			}
			members = append(members, entry)
		}
	}
	return fields{"up": up, "down": len(members) - up, addresses: members}
}

// memberHealth returns the reason of a member's state.
func (e *Emulator) memberHealth(probe *ForwardingProbe, a flowAddress, now time.Time) string {
	switch a.adminState {
	case "Up":
		return healthAdminUp
	case "Down":
		return healthAdminDown
	}
	if reason := e.health[healthKey{a.ip, probe.Port}]; reason != "" {
		return reason
	}
	if e.probed != nil {
		if up, known := e.probed(*probe, a.ip); known {
			return reasonOf(probe, up, healthBadStatus)
		}
	}
	if e.flows == nil {
		return healthUp
	}
	flow := &flowProbe{interval: probe.Interval, threshold: probe.Threshold}
	return reasonOf(probe, flow.isUp(e.flows.nodes[a.ip], now), healthNoAnswer)
}

func reasonOf(probe *ForwardingProbe, up bool, down string) string {
	switch {
	case up:
		return healthUp
	case sameName(cmp.Or(probe.Protocol, "Tcp"), "Tcp"):
		return healthTCPTimeout
	}
	return down
}
