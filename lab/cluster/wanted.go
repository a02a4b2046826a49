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

// facts is a snapshot of the API server.
type facts struct {
	services []corev1.Service
	slices   []discoveryv1.EndpointSlice
	nodes    []corev1.Node
	pools    []v1alpha1.BackendPool
	events   []corev1.Event
	// adminStates: draining nodes are Down. peoples are public IPs created by users.
	adminStates bool
	peoples     []string
	// several lists the load balancer configurations if there are more than one; percent is the
	// share of a pool that announced evictions leave up.
	several    []config.LoadBalancerConfiguration
	percent    int
	namespaces map[string]corev1.Namespace
	// interfaces: pools hold network interfaces, and all Services share the pool of all nodes.
	interfaces bool
}

func (s *Stage) facts() (facts, error) {
	var services corev1.ServiceList
	var endpoints discoveryv1.EndpointSliceList
	var nodes corev1.NodeList
	var pools v1alpha1.BackendPoolList
	var events corev1.EventList
	var namespaces corev1.NamespaceList
	for _, err := range []error{
		s.people.List(ctx, &services), s.people.List(ctx, &endpoints), s.people.List(ctx, &nodes), s.people.List(ctx, &pools), s.people.List(ctx, &events),
		s.people.List(ctx, &namespaces),
	} {
		if err != nil {
			return facts{}, err
		}
	}
	f := facts{services: services.Items, slices: endpoints.Items, nodes: nodes.Items, pools: pools.Items, events: events.Items}
	f.interfaces = s.interfaces()
	f.several, f.percent, f.namespaces = s.cfg.Configurations, *s.cfg.NodeAdminStateMinAvailablePercent, map[string]corev1.Namespace{}
	for _, n := range namespaces.Items {
		f.namespaces[n.Name] = n
	}
	f.adminStates = s.cfg.EnableNodeAdminState == nil || *s.cfg.EnableNodeAdminState
	for id := range s.peoples {
		f.peoples = append(f.peoples, id[strings.LastIndex(id, "/")+1:])
	}
	return f, nil
}

// ours reports whether Weir manages the load balancer of a Service.
func ours(svc *corev1.Service) bool {
	return svc.DeletionTimestamp == nil && svc.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		svc.Spec.LoadBalancerClass != nil && *svc.Spec.LoadBalancerClass == app.LoadBalancerClass
}

func owner(svc *corev1.Service) string {
	return ("a" + strings.ReplaceAll(string(svc.UID), "-", ""))[:32]
}

func internal(svc *corev1.Service) bool {
	return svc.Annotations[annotation+"azure-load-balancer-internal"] == "true"
}

func local(svc *corev1.Service) bool {
	return svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// balancerOf returns the load balancer of a Service.
func (f facts) balancerOf(svc *corev1.Service) string {
	if internal(svc) {
		return f.configurationOf(svc) + "-internal"
	}
	return f.configurationOf(svc)
}

// suffix returns the name suffix of an IP family.
func suffix(svc *corev1.Service, family corev1.IPFamily) string {
	if len(svc.Spec.IPFamilies) > 1 && family == corev1.IPv6Protocol {
		return "-IPv6"
	}
	return ""
}

// labelOf returns the frontend label of a Service; see frontend.label.
func labelOf(svc *corev1.Service, family corev1.IPFamily) string {
	if internal(svc) {
		return "private " + owner(svc) + suffix(svc, family)
	}
	return "public IP " + publicIPOf(svc, family)
}

// publicIPOf returns the name of a Service's public IP.
func publicIPOf(svc *corev1.Service, family corev1.IPFamily) string {
	if name := svc.Annotations[annotation+"azure-pip-name"]; name != "" && suffix(svc, family) == "" { // it applies to the first family
		return name
	}
	return clusterName + "-" + owner(svc) + suffix(svc, family)
}

// lines renders the desired Azure state in the format of cloud.lines.
func (f facts) lines() []string {
	set := map[string]bool{}
	for _, name := range f.peoples {
		set[fmt.Sprintf("public IP %s of %q", name, "")] = true
	}
	for i := range f.services {
		svc := &f.services[i]
		if !ours(svc) {
			continue
		}
		at := f.balancerOf(svc)
		set["load balancer "+at] = true
		for _, family := range svc.Spec.IPFamilies {
			label := labelOf(svc, family)
			set[at+": frontend "+label] = true
			if !internal(svc) && !slices.Contains(f.peoples, publicIPOf(svc, family)) {
				set[fmt.Sprintf("public IP %s of %q", publicIPOf(svc, family), svc.Namespace+"/"+svc.Name)] = true
			}
			members := f.spell(f.members(svc, family))
			for _, p := range svc.Spec.Ports {
				set[at+": "+label+" "+ruleOf(svc, p)+", members "+members] = true
			}
		}
	}
	var all []string
	for line := range set {
		all = append(all, line)
	}
	return all
}

// mayStay reports whether a line is about a pool of all nodes without a rule. It is deleted with
// its load balancer; if it has a BackendPool, it still follows the nodes.
func (f facts) mayStay(line string) bool {
	balancer, rest, _ := strings.Cut(line, ": pool ")
	name, members, unused := strings.Cut(rest, " without a rule, members ")
	family := familyOf(name)
	if !unused || name != clusterName && family != corev1.IPv6Protocol {
		return false
	}
	for i := range f.pools {
		if p := &f.pools[i]; p.Spec.LoadBalancer.Name == balancer && p.Spec.PoolName == name {
			return members == f.spell(f.allOf(strings.TrimSuffix(balancer, "-internal"), family))
		}
	}
	return true
}

// familyOf returns the IP family of a pool of all nodes.
func familyOf(pool string) corev1.IPFamily {
	if pool == clusterName+"-IPv6" {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// ruleOf renders the rule and probe of a port.
func ruleOf(svc *corev1.Service, p corev1.ServicePort) string {
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
	case local(svc):
		asks = fmt.Sprintf("HTTP %d/healthz 5s×2", svc.Spec.HealthCheckNodePort)
	case p.Protocol == corev1.ProtocolUDP:
		asks = "none"
	}
	return fmt.Sprintf("%s %d to %d%s%s, idle %s, %s, probe %s", p.Protocol, p.Port, to, floating, reset, idle, distribution, asks)
}

// spell renders the members of a pool; draining members are Down.
func (f facts) spell(members []string) string {
	down := f.down(members)
	var all []string
	for _, m := range members {
		if slices.Contains(down, m) {
			m += "(Down)"
		}
		all = append(all, m)
	}
	return strings.Join(all, " ")
}

// members returns the addresses that receive traffic for a Service.
func (f facts) members(svc *corev1.Service, family corev1.IPFamily) []string {
	if local(svc) && !f.interfaces { // the health probe checks each node
		return f.hosting(svc, family)
	}
	return f.allOf(f.configurationOf(svc), family)
}

// hosting returns the addresses of nodes with an endpoint of the Service.
func (f facts) hosting(svc *corev1.Service, family corev1.IPFamily) []string {
	return f.nodesOf(family, func(n *corev1.Node) bool { return f.hosts(n.Name, svc, family) })
}

// allOf returns the addresses of all nodes behind a load balancer.
func (f facts) allOf(configuration string, family corev1.IPFamily) []string {
	return f.nodesOf(family, func(n *corev1.Node) bool { return len(f.several) == 0 || n.Labels[placed] == configuration })
}

// nodesOf returns the addresses of nodes that are not excluded.
func (f facts) nodesOf(family corev1.IPFamily, which func(*corev1.Node) bool) []string {
	var all []string
	for i := range f.nodes {
		n := &f.nodes[i]
		if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded || !which(n) {
			continue
		}
		at := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP && isIn(a.Address, family) })
		if at >= 0 {
			all = append(all, n.Status.Addresses[at].Address)
		}
	}
	slices.Sort(all)
	return all
}

// hosts reports whether a node has an endpoint of the Service that accepts traffic.
func (f facts) hosts(node string, svc *corev1.Service, family corev1.IPFamily) bool {
	for _, slice := range f.slices {
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

// sources returns the source ranges of a Service; none means all.
func sources(svc *corev1.Service) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range svc.Spec.LoadBalancerSourceRanges {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// sampled are source addresses of the tested flows.
var sampled = map[corev1.IPFamily][]netip.Addr{
	corev1.IPv4Protocol: {netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("192.0.2.130"), netip.MustParseAddr("192.0.2.5")},
	corev1.IPv6Protocol: {netip.MustParseAddr("2001:db8:1::9"), netip.MustParseAddr("2001:db8:2::9")},
}

// flow is a tested flow.
type flow struct {
	from, to netip.Addr
	protocol string
	port     int32
}

func (f flow) String() string {
	return f.protocol + " " + f.from.String() + " to " + netip.AddrPortFrom(f.to, uint16(f.port)).String() + " (" + strconv.Itoa(int(f.port)) + ")" //nolint:gosec // a port
}

// flows returns the tested flows to public Services and whether they are allowed. A flow that one
// Service allows is not denied by another at the same address.
func (f facts) flows(addressOf func(label string) string) map[flow]bool {
	all := map[flow]bool{}
	for i := range f.services {
		svc := &f.services[i]
		if !ours(svc) || internal(svc) {
			continue
		}
		for _, family := range svc.Spec.IPFamilies {
			for _, p := range svc.Spec.Ports {
				to, port := []string{addressOf(labelOf(svc, family))}, p.Port
				if svc.Annotations[annotation+"azure-disable-load-balancer-floating-ip"] == "true" {
					to, port = f.members(svc, family), p.NodePort
				}
				for _, text := range to {
					ip, err := netip.ParseAddr(text)
					if err != nil {
						continue // reported by another check
					}
					for _, from := range sampled[family] {
						one := flow{from, ip, string(p.Protocol), port}
						ranges := sources(svc)
						all[one] = all[one] || len(ranges) == 0 || slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(from) })
						other := flow{from, ip, string(p.Protocol), 9} // a port without a Service
						all[other] = false
					}
				}
			}
		}
	}
	return all
}
