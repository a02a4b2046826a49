// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// SharedProbeName is the probe shared by all Services that are not Local.
const SharedProbeName = "cluster-service-shared-health-probe"

// SharedProbeOf returns the shared probe; kube-proxy answers it on every node.
func SharedProbeOf(port int32, path string) *lb.Probe {
	return &lb.Probe{
		Name: SharedProbeName, Protocol: lb.ProbeHTTP, Port: port, Path: path,
		IntervalSeconds: standardInterval, Threshold: standardThreshold,
	}
}

const (
	standardInterval  = 5 // seconds
	standardThreshold = 2
	// probeSpan limits interval times threshold, in seconds.
	probeSpan = 120
	localPath = "/healthz" // of kube-proxy, at the healthCheckNodePort
)

// probeOf returns the probe of a port, or nil. name is the rule's name; localName is the probe shared by the
// ports of a Local Service.
func (r *reader) probeOf(s Service, p Port, name, localName string, shared *lb.Probe) *lb.Probe {
	if r.readBool(ofPort(p.Port, portNoProbe)) {
		return nil
	}
	_, saysProtocol := r.readText(ofPort(p.Port, portProbeProtocol))
	_, saysPort := r.readText(ofPort(p.Port, portProbePort))
	_, saysPath := r.readText(ofPort(p.Port, portProbePath))
	own := saysProtocol || saysPort || saysPath
	switch proxied := UsesProxyProtocol(r.annotations); {
	case s.Local && !own && !proxied:
		return r.withTiming(p, lb.Probe{Name: localName, Protocol: lb.ProbeHTTP, Port: s.HealthCheckNodePort, Path: localPath}, false)
	case p.HealthCheckNodePort != 0 && !own && !proxied:
		return r.withTiming(p, lb.Probe{Name: name, Protocol: lb.ProbeHTTP, Port: p.HealthCheckNodePort, Path: localPath}, false)
	case !own && shared != nil && !proxied:
		return r.sharedProbeOf(name, *shared)
	case !own && p.Protocol != "TCP":
		return nil // UDP and SCTP ports cannot be probed
	}
	probe := lb.Probe{Name: name, Protocol: r.probeProtocol(s, p), Port: r.probePort(s, p)}
	if probe.Protocol != lb.ProbeTCP {
		probe.Path = r.probePath(p)
	}
	return r.withTiming(p, probe, true)
}

// sharedProbeOf returns the shared probe, or a copy of it under another name if the Service sets its behavior, which
// must not apply to other Services.
func (r *reader) sharedProbeOf(name string, shared lb.Probe) *lb.Probe {
	if _, ok := r.readText(NoHealthyBackends); ok {
		shared.Name, shared.NoHealthyBackends = name, r.noHealthyBackends()
	}
	return &shared
}

// UsesProxyProtocol reports whether a Private Link Service sends PROXY protocol headers to the Service. Probes then
// have the header too, which kube-proxy does not support, so its ports are not probed. See
// https://cloud-provider-azure.sigs.k8s.io/topics/pls-integration/
func UsesProxyProtocol(annotations map[string]string) bool {
	r := &reader{annotations: annotations}
	return r.readBool(PLSCreate) && r.readBool(PLSProxyProtocol)
}

// ProbesHTTP reports whether a probe does not support PROXY protocol headers.
func (spec *Spec) ProbesHTTP() bool {
	return slices.ContainsFunc(spec.Probes, func(p lb.Probe) bool { return p.Protocol != lb.ProbeTCP })
}

// withTiming adds interval and threshold. The port's annotations apply to its own probe only.
func (r *reader) withTiming(p Port, probe lb.Probe, own bool) *lb.Probe {
	interval, threshold := ProbeInterval, ProbeThreshold
	if own {
		interval = r.firstSet(ofPort(p.Port, portProbeInterval), interval)
		threshold = r.firstSet(ofPort(p.Port, portProbeThreshold), threshold)
	}
	probe.NoHealthyBackends = r.noHealthyBackends()
	probe.IntervalSeconds = r.readNumber(interval, " of seconds", standardInterval, probeSpan-1, standardInterval)
	probe.Threshold = r.readNumber(threshold, "", standardThreshold, probeSpan-1, standardThreshold)
	if span := probe.IntervalSeconds * probe.Threshold; span >= probeSpan {
		r.addProblem(interval, strconv.Itoa(int(probe.IntervalSeconds)),
			fmt.Sprintf("interval times number of probes (%d) below %d seconds, and it is %d", probe.Threshold, probeSpan, span))
	}
	return &probe
}

// probeProtocol returns the port's annotation, else its appProtocol, else the Service's annotation, else TCP.
// An unsupported appProtocol means TCP.
func (r *reader) probeProtocol(s Service, p Port) lb.ProbeProtocol {
	name := ofPort(p.Port, portProbeProtocol)
	if value, ok := r.readText(name); ok {
		return r.parseProbeProtocol(name, value)
	}
	if _, ok := r.readText(ProbeProtocol); p.AppProtocol != "" && (!ok || !UsesProxyProtocol(r.annotations)) {
		if known, ok := probeProtocols[strings.ToLower(p.AppProtocol)]; ok {
			return known
		}
		return lb.ProbeTCP
	}
	if value, ok := r.readText(ProbeProtocol); ok {
		return r.parseProbeProtocol(ProbeProtocol, value)
	}
	if s.Local && !UsesProxyProtocol(r.annotations) {
		return lb.ProbeHTTP
	}
	return lb.ProbeTCP
}

var probeProtocols = map[string]lb.ProbeProtocol{"tcp": lb.ProbeTCP, "http": lb.ProbeHTTP, "https": lb.ProbeHTTPS}

func (r *reader) parseProbeProtocol(name, value string) lb.ProbeProtocol {
	known, ok := probeProtocols[strings.ToLower(value)]
	if !ok {
		r.addProblem(name, value, `"tcp", "http" or "https"`)
		return lb.ProbeTCP
	}
	return known
}

// probePort returns the probed node port. The name or number of a Service port means its node port; any other
// number is used as is.
func (r *reader) probePort(s Service, p Port) int32 {
	name := ofPort(p.Port, portProbePort)
	value, ok := r.readText(name)
	if !ok {
		if s.Local && !UsesProxyProtocol(r.annotations) {
			return s.HealthCheckNodePort
		}
		return r.probedNodePort(p, p)
	}
	n, err := strconv.ParseUint(value, 10, 16)
	number := err == nil && strconv.FormatUint(n, 10) == value
	for _, other := range s.Ports {
		if value == other.Name || number && int64(other.Port) == int64(n) { //nolint:gosec // it has 16 bits
			return r.probedNodePort(p, other)
		}
	}
	if err != nil || n == 0 {
		r.addProblem(name, value, "the name or number of a port of the Service, or a port number from 1 to 65535")
		return p.NodePort
	}
	return int32(n)
}

// probedNodePort returns the node port of other, which the probe of p requires.
func (r *reader) probedNodePort(p, other Port) int32 {
	if other.NodePort == 0 {
		r.excludePort(p, "nodePort", "0",
			"a node port of port "+strconv.Itoa(int(other.Port))+" for the health probe (allocateLoadBalancerNodePorts), another port in "+ofPort(p.Port, portProbePort)+
				`, or no probe: `+ofPort(p.Port, portNoProbe)+` "true"`)
	}
	return other.NodePort
}

func (r *reader) probePath(p Port) string {
	name := r.firstSet(ofPort(p.Port, portProbePath), ProbePath)
	path, ok := r.readText(name)
	switch {
	case !ok:
		return "/"
	case !strings.HasPrefix(path, "/") || len(path) > 2048 || strings.ContainsAny(path, " \t\r\n"):
		r.addProblem(name, path, `a path that begins with "/", without spaces`)
	}
	return path
}

// HasServingProbes reports whether each rule of a Service has a probe that shows whether the Service serves on a
// node: for a Local Service, HTTP at the healthCheckNodePort, where kube-proxy counts the ready endpoints of the node.
// kube-proxy answers any path there; a TCP probe of the port succeeds without endpoints. With AllProbedUp, a node without
// endpoints gets flows.
func (spec *Spec) HasServingProbes(s Service) bool {
	if !s.Local || s.HealthCheckNodePort == 0 || len(spec.Rules) == 0 {
		return false
	}
	return !slices.ContainsFunc(spec.Rules, func(r lb.Rule) bool {
		return !slices.ContainsFunc(spec.Probes, func(p lb.Probe) bool {
			return p.Name == r.Probe && p.Protocol == lb.ProbeHTTP && p.Port == s.HealthCheckNodePort && p.NoHealthyBackends != lb.AllProbedUp
		})
	})
}
