// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"
	"strconv"

	"weir.dev/weir/internal/lb"
)

// Azure's limits of the idle timeout in minutes.
const (
	minIdleMinutes = 4
	maxIdleMinutes = 100
)

// ruleStyle is common to all rules of a Service.
type ruleStyle struct {
	floatingIP, reset, haPorts bool
	idleMinutes                int32
	distribution               lb.Distribution
	connectionTracking         *bool
}

func (r *reader) buildStyle(s Service, internal bool) ruleStyle {
	st := ruleStyle{
		floatingIP: !r.readBool(DisableFloatingIP), reset: !r.readBool(DisableTCPReset), haPorts: r.readBool(HAPorts) || internal && needsAllPorts(r, s),
		idleMinutes: r.readNumber(IdleTimeout, " of minutes", minIdleMinutes, maxIdleMinutes, minIdleMinutes), distribution: lb.Spread,
		connectionTracking: r.connectionTracking(),
	}
	if s.ClientIP {
		st.distribution = lb.SourceIP
	}
	if r.readBool(HAPorts) && !internal {
		r.addProblem(HAPorts, "true", `an internal load balancer (`+Internal+` "true"): Azure has high availability ports on no other`)
	}
	return st
}

// supportedTransports are the protocols with a rule per port. SCTP needs a rule for all ports of an internal frontend.
// See https://cloud-provider-azure.sigs.k8s.io/topics/loadbalancer/
var supportedTransports = map[string]lb.Transport{"TCP": lb.TCP, "UDP": lb.UDP}

// needsAllPorts reports whether an SCTP port of an internal Service gets a rule for all ports. This requires
// floating IP and no additional or shared address, because the rule would include the ports of other
// Services.
func needsAllPorts(r *reader, s Service) bool {
	_, additional := r.readText(AdditionalIPs)
	if additional || r.readBool(DisableFloatingIP) || s.SharesAddress {
		return false
	}
	return slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Protocol == "SCTP" && !r.readBool(ofPort(p.Port, portNoRule)) })
}

// probedPort returns the port to probe for a rule for all ports: the first, or the first TCP port if that is
// SCTP.
func probedPort(s Service, first Port) Port {
	if at := slices.IndexFunc(s.Ports, func(p Port) bool { return p.Protocol == "TCP" }); first.Protocol == "SCTP" && at >= 0 {
		return s.Ports[at]
	}
	return first
}

func (r *reader) addRules(spec *Spec, s Service, set Settings, f Frontend, st ruleStyle) {
	if len(spec.Rules) > maxServiceRules {
		return // already reported
	}
	localName := f.namePrefix + "-TCP-" + strconv.Itoa(int(s.HealthCheckNodePort)) + f.suffix
	for _, p := range s.Ports {
		if r.readBool(ofPort(p.Port, portNoRule)) {
			continue
		}
		transport, ok := supportedTransports[p.Protocol]
		if !ok && !st.haPorts {
			r.excludePort(p, fieldProtocol, p.Protocol, "TCP or UDP: Azure Load Balancer forwards SCTP on internal load balancers alone, by a rule for all ports with floating IP, at an address that no other Service has")
			continue
		}
		name := f.namePrefix + "-" + p.Protocol + "-" + strconv.Itoa(int(p.Port)) + f.suffix
		if len(name) > maxNameLength {
			r.addProblem(InternalSubnet, r.annotations[InternalSubnet],
				fmt.Sprintf("a subnet whose name leaves that of rule %s, which has %d characters, at most %d", name, len(name), maxNameLength))
		}
		rule := lb.Rule{
			Name: name, Transport: transport, Frontend: f.Frontend.Name, Pool: spec.poolName(f.Frontend.Family),
			FrontendPort: p.Port, BackendPort: p.Port, FloatingIP: st.floatingIP, IdleMinutes: st.idleMinutes,
			Distribution: st.distribution, DisableOutboundSNAT: set.DisableOutboundSNAT, ConnectionTracking: st.connectionTracking,
		}
		if !st.floatingIP {
			rule.BackendPort = r.nodePort(p)
		}
		if st.haPorts {
			rule.Transport, rule.FrontendPort, rule.BackendPort = lb.All, 0, 0
		}
		if rule.Transport != lb.UDP {
			rule.TCPReset = &st.reset
		}
		if st.haPorts {
			p = probedPort(s, p)
		}
		probe := r.probeOf(s, p, name, localName, set.SharedProbe)
		if r.isExcludedPort(p) {
			continue
		}
		if probe != nil {
			rule.Probe = probe.Name
			r.addProbe(spec, *probe)
		}
		spec.Rules = append(spec.Rules, rule)
		if r.exceedsLimit("spec.ports", len(spec.Rules), maxServiceRules, "rules", "Azure's limit for a load balancer") {
			return
		}
		if st.haPorts {
			return // one rule covers all ports
		}
	}
}

const fieldProtocol = "protocol"

// ofPorts names a field by port number, because an index does not help users.
func ofPorts(p Port, field string) string { return "port " + strconv.Itoa(int(p.Port)) + ": " + field }

func (r *reader) nodePort(p Port) int32 {
	if p.NodePort == 0 {
		r.excludePort(p, "nodePort", "0", "a node port (allocateLoadBalancerNodePorts), or floating IP: remove "+DisableFloatingIP)
	}
	return p.NodePort
}
