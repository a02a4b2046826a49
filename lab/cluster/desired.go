// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/config"
)

// annotation is the prefix of the annotations.
const annotation = "service.beta.kubernetes.io/"

// objects is a snapshot of the API server.
type objects struct {
	services []corev1.Service
	slices   []discoveryv1.EndpointSlice
	nodes    []corev1.Node
	pools    []v1alpha1.BackendPool
	events   []corev1.Event
	// Whether draining nodes are Down, and the public IPs created by users.
	adminStates bool
	userIPs     []string
	// The load balancer configurations if there are more than one, and the percentage of a pool
	// that announced evictions leave up.
	configurations      []config.LoadBalancerConfiguration
	minAvailablePercent int
	namespaces          map[string]corev1.Namespace
	// interfaces: pools hold network interfaces, and all Services share the pool of all nodes.
	interfaces bool
}

func (s *Stage) readObjects() (objects, error) {
	var services corev1.ServiceList
	var endpoints discoveryv1.EndpointSliceList
	var nodes corev1.NodeList
	var pools v1alpha1.BackendPoolList
	var events corev1.EventList
	var namespaces corev1.NamespaceList
	for _, err := range []error{
		s.userClient.List(ctx, &services), s.userClient.List(ctx, &endpoints), s.userClient.List(ctx, &nodes), s.userClient.List(ctx, &pools), s.userClient.List(ctx, &events),
		s.userClient.List(ctx, &namespaces),
	} {
		if err != nil {
			return objects{}, err
		}
	}
	f := objects{services: services.Items, slices: endpoints.Items, nodes: nodes.Items, pools: pools.Items, events: events.Items}
	f.interfaces = s.hasInterfaces()
	f.configurations, f.minAvailablePercent, f.namespaces = s.cfg.Configurations, *s.cfg.NodeAdminStateMinAvailablePercent, map[string]corev1.Namespace{}
	for _, n := range namespaces.Items {
		f.namespaces[n.Name] = n
	}
	f.adminStates = s.cfg.EnableNodeAdminState == nil || *s.cfg.EnableNodeAdminState
	for id := range s.userIPs {
		f.userIPs = append(f.userIPs, id[strings.LastIndex(id, "/")+1:])
	}
	return f, nil
}

// isManaged reports whether Weir manages the load balancer of a Service.
func isManaged(svc *corev1.Service) bool {
	return svc.DeletionTimestamp == nil && svc.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		svc.Spec.LoadBalancerClass != nil && *svc.Spec.LoadBalancerClass == app.LoadBalancerClass
}

func ownerName(svc *corev1.Service) string {
	return ("a" + strings.ReplaceAll(string(svc.UID), "-", ""))[:32]
}

func isInternal(svc *corev1.Service) bool {
	return svc.Annotations[annotation+"azure-load-balancer-internal"] == "true"
}

func isLocal(svc *corev1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func (o objects) loadBalancerName(svc *corev1.Service) string {
	if isInternal(svc) {
		return o.recordedPlacement(svc) + "-internal"
	}
	return o.recordedPlacement(svc)
}

func familySuffix(svc *corev1.Service, family corev1.IPFamily) string {
	if len(svc.Spec.IPFamilies) > 1 && family == corev1.IPv6Protocol {
		return "-IPv6"
	}
	return ""
}

// frontendLabel returns the frontend label of a Service; see frontend.label.
func frontendLabel(svc *corev1.Service, family corev1.IPFamily) string {
	if isInternal(svc) {
		return "private " + ownerName(svc) + familySuffix(svc, family)
	}
	return "public IP " + publicIPName(svc, family)
}

func publicIPName(svc *corev1.Service, family corev1.IPFamily) string {
	if name := svc.Annotations[annotation+"azure-pip-name"]; name != "" && familySuffix(svc, family) == "" { // it applies to the first family
		return name
	}
	return clusterName + "-" + ownerName(svc) + familySuffix(svc, family)
}

// formatLines renders the desired Azure state in the format of azureState.formatLines.
func (o objects) formatLines() []string {
	set := map[string]bool{}
	for _, name := range o.userIPs {
		set[fmt.Sprintf("public IP %s of %q", name, "")] = true
	}
	for i := range o.services {
		svc := &o.services[i]
		if !isManaged(svc) {
			continue
		}
		at := o.loadBalancerName(svc)
		set["load balancer "+at] = true
		for _, family := range svc.Spec.IPFamilies {
			label := frontendLabel(svc, family)
			set[at+": frontend "+label] = true
			if !isInternal(svc) && !slices.Contains(o.userIPs, publicIPName(svc, family)) {
				set[fmt.Sprintf("public IP %s of %q", publicIPName(svc, family), svc.Namespace+"/"+svc.Name)] = true
			}
			members := o.formatMembers(o.serviceAddresses(svc, family))
			for _, p := range svc.Spec.Ports {
				set[at+": "+label+" "+formatRule(svc, p)+", members "+members] = true
			}
		}
	}
	var lines []string
	for line := range set {
		lines = append(lines, line)
	}
	return lines
}

// isUnusedNodePool reports whether a line is about a pool of all nodes without a rule. It is deleted with
// its load balancer; if it has a BackendPool, it still follows the nodes.
func (o objects) isUnusedNodePool(line string) bool {
	balancer, rest, _ := strings.Cut(line, ": pool ")
	name, members, unused := strings.Cut(rest, " without a rule, members ")
	family := poolFamily(name)
	if !unused || name != clusterName && family != corev1.IPv6Protocol {
		return false
	}
	for i := range o.pools {
		if p := &o.pools[i]; p.Spec.LoadBalancer.Name == balancer && p.Spec.PoolName == name {
			return members == o.formatMembers(o.loadBalancerNodes(strings.TrimSuffix(balancer, "-internal"), family))
		}
	}
	return true
}

// poolFamily returns the IP family of a pool of all nodes.
func poolFamily(pool string) corev1.IPFamily {
	if pool == clusterName+"-IPv6" {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// formatRule renders the rule and probe of a port.
func formatRule(svc *corev1.Service, p corev1.ServicePort) string {
	to, floating := p.Port, " floating"
	if svc.Annotations[annotation+"azure-disable-load-balancer-floating-ip"] == "true" {
		to, floating = p.NodePort, ""
	}
	idle, distribution, reset := "4", "Default", ""
	if text := svc.Annotations[annotation+"azure-load-balancer-tcp-idle-timeout"]; text != "" {
		idle = text
	}
	if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		distribution = "SourceIP"
	}
	if p.Protocol == corev1.ProtocolTCP {
		reset = " reset"
	}
	asks := fmt.Sprintf("TCP %d 5s×2", p.NodePort)
	switch {
	case isLocal(svc):
		asks = fmt.Sprintf("HTTP %d/healthz 5s×2", svc.Spec.HealthCheckNodePort)
	case p.Protocol == corev1.ProtocolUDP:
		asks = "none"
	}
	return fmt.Sprintf("%s %d to %d%s%s, idle %s, %s, probe %s", p.Protocol, p.Port, to, floating, reset, idle, distribution, asks)
}

// formatMembers renders the members of a pool; draining members are Down.
func (o objects) formatMembers(members []string) string {
	down := o.downAddresses(members)
	var names []string
	for _, m := range members {
		if slices.Contains(down, m) {
			m += "(Down)"
		}
		names = append(names, m)
	}
	return strings.Join(names, " ")
}

// serviceAddresses returns the addresses that receive traffic for a Service.
func (o objects) serviceAddresses(svc *corev1.Service, family corev1.IPFamily) []string {
	if isLocal(svc) && !o.interfaces { // the health probe checks each node
		return o.hostingAddresses(svc, family)
	}
	return o.loadBalancerNodes(o.recordedPlacement(svc), family)
}

// hostingAddresses returns the addresses of nodes with an endpoint of the Service.
func (o objects) hostingAddresses(svc *corev1.Service, family corev1.IPFamily) []string {
	return o.filterNodes(family, func(n *corev1.Node) bool { return o.hasEndpoint(n.Name, svc, family) })
}

// loadBalancerNodes returns the addresses of all nodes behind a load balancer.
func (o objects) loadBalancerNodes(configuration string, family corev1.IPFamily) []string {
	return o.filterNodes(family, func(n *corev1.Node) bool {
		return len(o.configurations) == 0 || n.Labels[placementLabel] == configuration
	})
}

// filterNodes returns the addresses of nodes that are not excluded.
func (o objects) filterNodes(family corev1.IPFamily, which func(*corev1.Node) bool) []string {
	var nodes []string
	for i := range o.nodes {
		n := &o.nodes[i]
		if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded || !which(n) {
			continue
		}
		at := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
			return a.Type == corev1.NodeInternalIP && isInFamily(a.Address, family)
		})
		if at >= 0 {
			nodes = append(nodes, n.Status.Addresses[at].Address)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// hasEndpoint reports whether a node has an endpoint of the Service that accepts traffic.
func (o objects) hasEndpoint(node string, svc *corev1.Service, family corev1.IPFamily) bool {
	for _, slice := range o.slices {
		if slice.Namespace != svc.Namespace || slice.Labels[discoveryv1.LabelServiceName] != svc.Name || string(slice.AddressType) != string(family) {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.NodeName != nil && *e.NodeName == node && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return true
			}
		}
	}
	return false
}

// sourceRanges returns the source ranges of a Service; none means all.
func sourceRanges(svc *corev1.Service) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range svc.Spec.LoadBalancerSourceRanges {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}

// sampledSources are source addresses of the tested flows.
var sampledSources = map[corev1.IPFamily][]netip.Addr{
	corev1.IPv4Protocol: {netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("192.0.2.130"), netip.MustParseAddr("192.0.2.5")},
	corev1.IPv6Protocol: {netip.MustParseAddr("2001:db8:1::9"), netip.MustParseAddr("2001:db8:2::9")},
}

type flow struct {
	from, to netip.Addr
	protocol string
	port     int32
}

func (f flow) String() string {
	return f.protocol + " " + f.from.String() + " to " + netip.AddrPortFrom(f.to, uint16(f.port)).String() + " (" + strconv.Itoa(int(f.port)) + ")" //nolint:gosec // a port
}

// sampledFlows returns the tested flows to public Services and whether they are allowed. A flow that one
// Service allows is not denied by another at the same address.
func (o objects) sampledFlows(addressOf func(label string) string) map[flow]bool {
	flows := map[flow]bool{}
	for i := range o.services {
		svc := &o.services[i]
		if !isManaged(svc) || isInternal(svc) {
			continue
		}
		for _, family := range svc.Spec.IPFamilies {
			for _, p := range svc.Spec.Ports {
				to, port := []string{addressOf(frontendLabel(svc, family))}, p.Port
				if svc.Annotations[annotation+"azure-disable-load-balancer-floating-ip"] == "true" {
					to, port = o.serviceAddresses(svc, family), p.NodePort
				}
				for _, text := range to {
					ip, err := netip.ParseAddr(text)
					if err != nil {
						continue // reported by another check
					}
					for _, from := range sampledSources[family] {
						sample := flow{from, ip, string(p.Protocol), port}
						ranges := sourceRanges(svc)
						flows[sample] = flows[sample] || len(ranges) == 0 || slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(from) })
						other := flow{from, ip, string(p.Protocol), 9} // a port without a Service
						flows[other] = false
					}
				}
			}
		}
	}
	return flows
}
