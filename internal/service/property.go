// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Annotations of Azure properties. Without one, a value of another client is kept.
const (
	NoHealthyBackends  = "weir.dev/no-healthy-backends-behavior"
	ConnectionTracking = "weir.dev/enable-connection-tracking"
	DrainPeriod        = "weir.dev/drain-period"
	// GatewayLoadBalancer has the ID of a frontend of a gateway load balancer for each IP family.
	GatewayLoadBalancer = "weir.dev/gateway-load-balancer"
)

// WrittenProperties records the annotations of properties that Weir may have written. If one is removed, Weir writes
// Azure's default.
const WrittenProperties = "weir.dev/written-properties"

// WeirAnnotations are the annotations of Weir that a Service is built from.
var WeirAnnotations = []string{Zones, RetainAddress, NoHealthyBackends, ConnectionTracking, DrainPeriod, GatewayLoadBalancer, WrittenProperties}

var properties = []string{NoHealthyBackends, ConnectionTracking, DrainPeriod, GatewayLoadBalancer}

// IsProperty reports whether WrittenProperties can have a name.
func IsProperty(name string) bool { return slices.Contains(properties, "weir.dev/"+name) }

// requestedProperties returns the names to record in WrittenProperties.
func (r *reader) requestedProperties() []string {
	var names []string
	for _, name := range properties {
		if _, ok := r.readText(name); ok {
			names = append(names, strings.TrimPrefix(name, "weir.dev/"))
		}
	}
	return names
}

func (r *reader) hasWritten(name string) bool {
	return slices.Contains(r.readList(WrittenProperties), strings.TrimPrefix(name, "weir.dev/"))
}

// noHealthyBackends is empty to keep the observed behavior.
func (r *reader) noHealthyBackends() lb.NoHealthyBackends {
	value, ok := r.readText(NoHealthyBackends)
	switch {
	case !ok && r.hasWritten(NoHealthyBackends), ok && strings.EqualFold(value, string(lb.AllProbedDown)):
		return lb.AllProbedDown
	case !ok:
		return ""
	case strings.EqualFold(value, string(lb.AllProbedUp)):
		return lb.AllProbedUp
	}
	r.addProblem(NoHealthyBackends, value, `"AllProbedDown" or "AllProbedUp"`)
	return ""
}

// connectionTracking is nil to keep the observed value.
func (r *reader) connectionTracking() *bool {
	if _, ok := r.readText(ConnectionTracking); !ok && !r.hasWritten(ConnectionTracking) {
		return nil
	}
	return new(r.readBool(ConnectionTracking))
}

// maxDrainSeconds is Weir's limit. Azure documents none.
const maxDrainSeconds = 3600

// drainSeconds is nil to keep the observed drain period of the Service's own pool.
func (r *reader) drainSeconds(s Service, set Settings) *int32 {
	value, ok := r.readText(DrainPeriod)
	if !ok && !r.hasWritten(DrainPeriod) {
		return nil
	}
	seconds := r.readNumber(DrainPeriod, " of seconds", 0, maxDrainSeconds, 0)
	if ok && (!s.Local || !set.UsesOwnPool(set.Interfaces, NoPool)) {
		r.addFlaw(DrainPeriod, value, `a Service with a pool of its own (externalTrafficPolicy Local, and localServicePools "own" in azure.json)`, effectNotShared)
	}
	return &seconds
}

// RequestedGatewayLoadBalancers returns the IDs in annotation GatewayLoadBalancer, valid or not.
func RequestedGatewayLoadBalancers(annotations map[string]string) []string {
	return (&reader{annotations: annotations}).readList(GatewayLoadBalancer)
}

// setGatewayLoadBalancers sets those of public frontends; nil keeps the observed ones.
func (r *reader) setGatewayLoadBalancers(spec *Spec) {
	value, ok := r.readText(GatewayLoadBalancer)
	if !ok && !spec.Internal && r.hasWritten(GatewayLoadBalancer) {
		for i := range spec.Frontends {
			spec.Frontends[i].Frontend.GatewayLoadBalancer = new("")
		}
	}
	if !ok {
		return
	}
	if spec.Internal {
		r.addProblem(GatewayLoadBalancer, value, "a public Service: Azure chains no private frontend to a gateway load balancer. Remove the annotation")
		return
	}
	ids := RequestedGatewayLoadBalancers(r.annotations)
	if len(ids) != len(spec.Frontends) {
		r.addProblem(GatewayLoadBalancer, value, "one id for each IP family, in the order of spec.ipFamilies, separated by commas")
		return
	}
	for i, text := range ids {
		id, err := lb.ParseFrontendID(text)
		if err != nil {
			r.addProblem(GatewayLoadBalancer, text, "the id of a frontend of a gateway load balancer, /subscriptions/…/resourceGroups/…/providers/"+lb.TypeLoadBalancer+"/…/frontendIPConfigurations/…")
			continue
		}
		spec.Frontends[i].Frontend.GatewayLoadBalancer = new(id.String())
	}
}
