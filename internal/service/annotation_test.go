// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
)

func sameAddr(a, b netip.Addr) bool { return a == b }

func formatTags(tags map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		pairs = append(pairs, key+"="+tags[key])
	}
	return strings.Join(pairs, " ")
}

// specCase is a part of a Spec as formatted by show.
type specCase struct {
	about   string
	service Service
	show    func(Spec) string
	want    string
}

func checkSpecs(t *testing.T, tests []specCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			if got := tt.show(buildValidSpec(t, tt.service, testSettings())); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func firstRule(w Spec) string {
	r := w.Rules[0]
	reset := "nil"
	if r.TCPReset != nil {
		reset = fmt.Sprint(*r.TCPReset)
	}
	return fmt.Sprintf("%s %d->%d floating %v idle %d reset %s", r.Transport, r.FrontendPort, r.BackendPort, r.FloatingIP, r.IdleMinutes, reset)
}

func firstProbe(w Spec) string {
	if len(w.Probes) == 0 {
		return "none"
	}
	p := w.Probes[0]
	return fmt.Sprintf("%s %d %s every %d s, %d", p.Protocol, p.Port, p.Path, p.IntervalSeconds, p.Threshold)
}

func firstFrontend(w Spec) string {
	f := w.Frontends[0].Frontend
	return fmt.Sprintf("%s in %s, %v static %v", f.Name, strings.TrimPrefix(f.Subnet, network), f.PrivateIP, f.Static)
}

func firstPublicIP(w Spec) string {
	p := w.Frontends[len(w.Frontends)-1].PublicIP
	return fmt.Sprintf("%s/%s named %v %v", p.ID.ResourceGroup, p.ID.Name, p.UserNamed, p.Address)
}

func firstLabel(w Spec) string {
	p := w.Frontends[0].PublicIP
	return fmt.Sprintf("%q %v, tagged %v", p.DNSLabel, p.SetsDNSLabel, p.Tags[TagDNSLabel] != "")
}

// Annotations of frontends and addresses.
func TestAnnotationsOfAddresses(t *testing.T) {
	prefixID := subscription + "/resourceGroups/net/providers/Microsoft.Network/publicIPPrefixes/p"
	checkSpecs(t, []specCase{
		{"internal", newService(asInternal), firstFrontend, owner + " in /subnets/nodes, invalid IP static false"},
		{"internal in another subnet", newService(asInternal, withAnnotation(InternalSubnet, "apps")), firstFrontend, owner + "-apps in /subnets/apps, invalid IP static false"},
		{"internal with an address", newService(asInternal, withAnnotation(IPv4, "10.0.0.9")), firstFrontend, owner + " in /subnets/nodes, 10.0.0.9 static true"},
		{"internal with spec.loadBalancerIP", newService(asInternal, func(s *Service) { s.LoadBalancerIP = "10.0.0.8" }), firstFrontend, owner + " in /subnets/nodes, 10.0.0.8 static true"},
		{"the annotation goes first", newService(asInternal, withAnnotation(IPv4, "10.0.0.9"), func(s *Service) { s.LoadBalancerIP = "10.0.0.8" }), firstFrontend, owner + " in /subnets/nodes, 10.0.0.9 static true"},
		{"false is public", newService(withAnnotation(Internal, "False")), firstPublicIP, "rg/kubernetes-" + owner + " named false invalid IP"},
		{"public IP by name", newService(withAnnotation(PIPName, "mine")), firstPublicIP, "rg/mine named true invalid IP"},
		{"public IPv6 by name", newService(asDualStack, withAnnotation(PIPName, "mine"), withAnnotation(PIPNameIPv6, "mine6")), firstPublicIP, "rg/mine6 named true invalid IP"},
		{"public IP by address", newService(withAnnotation(IPv4, "20.0.0.9")), firstPublicIP, "rg/kubernetes-" + owner + " named false 20.0.0.9"},
		{"resource group", newService(withAnnotation(PIPResourceGroup, "net"), withAnnotation(PIPName, "mine")), firstPublicIP, "net/mine named true invalid IP"},
		{"prefix", newService(withAnnotation(PIPPrefixID, prefixID)), func(w Spec) string { return w.Frontends[0].PublicIP.Prefix }, prefixID},
		{"prefix for IPv6", newService(asDualStack, withAnnotation(PIPPrefixIDIPv6, prefixID)), func(w Spec) string { return w.Frontends[0].PublicIP.Prefix + w.Frontends[1].PublicIP.Prefix }, prefixID},
		{"tags", newService(withAnnotation(PIPTags, "team = shop, cost=,k8s-azure-service=other,Weir-allowed-namespaces=*")), func(w Spec) string { return formatTags(w.Frontends[0].PublicIP.Tags) },
			"cost= k8s-azure-cluster-name=kubernetes k8s-azure-service=shop/web team=shop"},
		{"tags with other capitals", newService(withAnnotation(PIPTags, "K8S-Azure-Service=x,K8s-azure-cluster-name=y")), func(w Spec) string { return formatTags(w.Frontends[0].PublicIP.Tags) },
			"k8s-azure-cluster-name=kubernetes k8s-azure-service=shop/web"},
		{"IP tags", newService(withAnnotation(PIPIPTags, "RoutingPreference=Internet")), func(w Spec) string { return formatTags(w.Frontends[0].PublicIP.IPTags) }, "RoutingPreference=Internet"},
		{"DNS label", newService(withAnnotation(DNSLabel, "shop-web")), firstLabel, `"shop-web" true, tagged true`},
		{"empty DNS label", newService(withAnnotation(DNSLabel, "")), firstLabel, `"" true, tagged false`},
		{"no DNS label", newService(), firstLabel, `"" false, tagged false`},
	})
}

// Annotations of rules.
func TestAnnotationsOfRules(t *testing.T) {
	checkSpecs(t, []specCase{
		{"no floating IP", newService(withAnnotation(DisableFloatingIP, "true")), firstRule, "Tcp 80->30080 floating false idle 4 reset true"},
		{"idle timeout", newService(withAnnotation(IdleTimeout, " 15 ")), firstRule, "Tcp 80->80 floating true idle 15 reset true"},
		{"no TCP reset", newService(withAnnotation(DisableTCPReset, "true")), firstRule, "Tcp 80->80 floating true idle 4 reset false"},
		{"high availability ports", newService(asInternal, withAnnotation(HAPorts, "true")), firstRule, "All 0->0 floating true idle 4 reset true"},
		{"client IP", newService(func(s *Service) { s.ClientIP = true }), func(w Spec) string { return string(w.Rules[0].Distribution) }, "SourceIP"},
		{"no rule for a port", newService(withAnnotation(ofPort(80, portNoRule), "true")), func(w Spec) string { return fmt.Sprint(len(w.Rules), len(w.Probes)) }, "0 0"},
		{"configurations", newService(withAnnotation(Configurations, "lb-1, lb-2,")), func(w Spec) string { return fmt.Sprint(w.Configurations) }, "[lb-1 lb-2]"},
	})
}

// Annotations of probes.
func TestAnnotationsOfProbes(t *testing.T) {
	checkSpecs(t, []specCase{
		{"no probe for a port", newService(withAnnotation(ofPort(80, portNoProbe), "true")), firstProbe, "none"},
		{"probe protocol", newService(withAnnotation(ProbeProtocol, "HTTP")), firstProbe, "Http 30080 / every 5 s, 2"},
		{"appProtocol goes first", newService(withAnnotation(ProbeProtocol, "tcp"), withPorts(Port{Protocol: "TCP", AppProtocol: "https", Port: 80, NodePort: 30080})), firstProbe, "Https 30080 / every 5 s, 2"},
		{"an appProtocol that no probe speaks", newService(withAnnotation(ProbePath, "/x"), withPorts(Port{Protocol: "TCP", AppProtocol: "kubernetes.io/h2c", Port: 80, NodePort: 30080})), firstProbe, "Tcp 30080  every 5 s, 2"},
		{"the port's protocol goes before both", newService(withAnnotation(ofPort(80, portProbeProtocol), "http"), withAnnotation(ProbeProtocol, "tcp"), withPorts(Port{Protocol: "TCP", AppProtocol: "https", Port: 80, NodePort: 30080})), firstProbe, "Http 30080 / every 5 s, 2"},
		{"path", newService(withAnnotation(ProbeProtocol, "http"), withAnnotation(ProbePath, "/live")), firstProbe, "Http 30080 /live every 5 s, 2"},
		{"a path means nothing to TCP", newService(withAnnotation(ProbePath, "/live")), firstProbe, "Tcp 30080  every 5 s, 2"},
		{"the port's path", newService(withAnnotation(ProbeProtocol, "http"), withAnnotation(ProbePath, "/live"), withAnnotation(ofPort(80, portProbePath), "/ready")), firstProbe, "Http 30080 /ready every 5 s, 2"},
		{"interval and number", newService(withAnnotation(ProbeInterval, "10"), withAnnotation(ProbeThreshold, "3")), firstProbe, "Tcp 30080  every 10 s, 3"},
		{"the port's interval and number", newService(withAnnotation(ProbeInterval, "10"), withAnnotation(ofPort(80, portProbeInterval), "20"), withAnnotation(ofPort(80, portProbeThreshold), "4")), firstProbe, "Tcp 30080  every 20 s, 4"},
		{"probe port by number", newService(withAnnotation(ofPort(80, portProbePort), "10256"), withAnnotation(ofPort(80, portProbeProtocol), "http")), firstProbe, "Http 10256 / every 5 s, 2"},
		{"probe port by name", newService(withAnnotation(ofPort(80, portProbePort), "health"), withPorts(Port{Name: "http", Protocol: "TCP", Port: 80, NodePort: 1}, Port{Name: "health", Protocol: "TCP", Port: 81, NodePort: 2})), firstProbe, "Tcp 2  every 5 s, 2"},
		{"probe port by a port of the Service", newService(withAnnotation(ofPort(80, portProbePort), "80")), firstProbe, "Tcp 30080  every 5 s, 2"},
		{"UDP", newService(withPorts(Port{Protocol: "UDP", Port: 53, NodePort: 30053})), firstProbe, "none"},
		{"UDP with a probe port", newService(withPorts(Port{Protocol: "UDP", Port: 53, NodePort: 30053}), withAnnotation(ofPort(53, portProbePort), "8080")), firstProbe, "Tcp 8080  every 5 s, 2"},
		{"Local", newService(asLocal, withAnnotation(ProbeProtocol, "tcp"), withAnnotation(ProbePath, "/x")), firstProbe, "Http 31000 /healthz every 5 s, 2"},
		{"Local with interval", newService(asLocal, withAnnotation(ProbeInterval, "15")), firstProbe, "Http 31000 /healthz every 15 s, 2"},
		{"Local with a port of its own", newService(asLocal, withAnnotation(ofPort(80, portProbePort), "10256"), withAnnotation(ofPort(80, portProbePath), "/healthz")), firstProbe, "Http 10256 /healthz every 5 s, 2"},
	})
}

// A problem names the annotation and the allowed values, and nothing is desired.
func TestBadValues(t *testing.T) {
	tests := []struct {
		service  Service
		field    string
		wantText string
	}{
		{newService(withAnnotation(NoHealthyBackends, "Up")), NoHealthyBackends, `is "Up": want "AllProbedDown" or "AllProbedUp"`},
		{newService(withAnnotation(DrainPeriod, "3601")), DrainPeriod, `is "3601": want a whole number of seconds from 0 to 3600`},
		{newService(withAnnotation(DrainPeriod, "-1")), DrainPeriod, `is "-1": want a whole number of seconds from 0 to 3600`},
		{newService(withAnnotation(DrainPeriod, "30s")), DrainPeriod, `is "30s": want a whole number of seconds from 0 to 3600`},
		{newService(withAnnotation(ConnectionTracking, "yes")), ConnectionTracking, `is "yes": want "true" or "false"`},
		{newService(withAnnotation(GatewayLoadBalancer, "gw")), GatewayLoadBalancer, `is "gw": want the id of a frontend of a gateway load balancer`},
		{newService(withAnnotation(GatewayLoadBalancer, gatewayFrontend("gw/x"))), GatewayLoadBalancer, "want the id of a frontend of a gateway load balancer"},
		{newService(withAnnotation(GatewayLoadBalancer, gatewayFrontend("..")), asDualStack), GatewayLoadBalancer, "want one id for each IP family"},
		{newService(withAnnotation(GatewayLoadBalancer, gatewayFrontend("a")+","+gatewayFrontend("b"))), GatewayLoadBalancer, "want one id for each IP family"},
		{newService(withAnnotation(GatewayLoadBalancer, ",")), GatewayLoadBalancer, "want one id for each IP family"},
		{newService(asInternal, withAnnotation(GatewayLoadBalancer, gatewayFrontend("a"))), GatewayLoadBalancer, "want a public Service"},
		{newService(withAnnotation(Internal, "yes")), Internal, `is "yes": want "true" or "false"`},
		{newService(asInternal, withAnnotation(InternalSubnet, "../x")), InternalSubnet, "the name of a subnet"},
		{newService(asInternal, withAnnotation(InternalSubnet, strings.Repeat("s", 60))), InternalSubnet, "at most 80"},
		{newService(asInternal, withAnnotation(IPv4, "fd00::1")), IPv4, "an IPv4 address"},
		{newService(asInternal, withAnnotation(IPv4, "10.0.0")), IPv4, "an IPv4 address"},
		{newService(asInternal, asDualStack, withAnnotation(IPv6, "fe80::1%eth0")), IPv6, "an IPv6 address"},
		{newService(asInternal, func(s *Service) { s.LoadBalancerIP = "no" }), "spec.loadBalancerIP", "an IPv4 address"},
		{newService(withAnnotation(PIPName, "a/b")), PIPName, "the name of a public IP"},
		{newService(withAnnotation(PIPName, "mine"), withAnnotation(IPv4, "20.0.0.9")), PIPName, "no address beside it"},
		{newService(withAnnotation(PIPResourceGroup, "a/b")), PIPResourceGroup, "the name of a resource group"},
		{newService(withAnnotation(PIPPrefixID, "p")), PIPPrefixID, "the id of a public IP prefix"},
		{newService(withAnnotation(PIPPrefixID, subscription+"/resourceGroups/net/providers/Microsoft.Network/publicIPAddresses/p")), PIPPrefixID, "the id of a public IP prefix"},
		{newService(withAnnotation(PIPTags, "team")), PIPTags, `pairs like "a=b,c=d"`},
		{newService(withAnnotation(PIPTags, manyTags(49))), PIPTags, "there are 51, and Azure allows 50"},
		{newService(withPorts(Port{Protocol: "TCP", Port: 80})), "port 80: nodePort", "no_probe_rule"},
		{newService(withAnnotation(PIPTags, "a<b=c")), PIPTags, "without <"},
		{newService(withAnnotation(PIPTags, "a="+strings.Repeat("x", 257))), PIPTags, "at most 256"},
		{newService(withAnnotation(PIPIPTags, "RoutingPreference=")), PIPIPTags, "RoutingPreference=Internet"},
		{newService(withAnnotation(DNSLabel, "Shop")), DNSLabel, "lower-case"},
		{newService(withAnnotation(AdditionalIPs, "20.0.0.1, here")), AdditionalIPs, "an IPv4 address"},
		{newService(withAnnotation(IdleTimeout, "3")), IdleTimeout, "from 4 to 100"},
		{newService(withAnnotation(IdleTimeout, "101")), IdleTimeout, "from 4 to 100"},
		{newService(withAnnotation(IdleTimeout, "4.5")), IdleTimeout, "a whole number"},
		{newService(withAnnotation(HAPorts, "true")), HAPorts, "an internal load balancer"},
		{newService(withAnnotation(ProbeProtocol, "udp")), ProbeProtocol, `"tcp", "http" or "https"`},
		{newService(withAnnotation(ofPort(80, portProbeProtocol), "icmp")), ofPort(80, portProbeProtocol), `"tcp", "http" or "https"`},
		{newService(withAnnotation(ofPort(80, portProbePort), "70000")), ofPort(80, portProbePort), "1 to 65535"},
		{newService(withAnnotation(ofPort(80, portProbePort), "nobody")), ofPort(80, portProbePort), "name or number of a port"},
		{newService(withAnnotation(ProbeInterval, "4")), ProbeInterval, "from 5 to"},
		{newService(withAnnotation(ProbeThreshold, "1")), ProbeThreshold, "from 2 to"},
		{newService(withAnnotation(ProbeInterval, "60")), ProbeInterval, "below 120 seconds, and it is 120"},
		{newService(withAnnotation(ProbeProtocol, "http"), withAnnotation(ProbePath, "live")), ProbePath, `begins with "/"`},
		{newService(withAnnotation(ofPort(80, portNoRule), "1")), ofPort(80, portNoRule), `"true" or "false"`},
		{newService(withPorts(Port{Protocol: "SCTP", Port: 90})), "port 90: protocol", "TCP or UDP"},
		{newService(withAnnotation(DisableFloatingIP, "true"), withAnnotation(ofPort(80, portNoProbe), "true"), withPorts(Port{Protocol: "TCP", Port: 80})), "port 80: nodePort", "allocateLoadBalancerNodePorts"},
		{newService(asLocal, func(s *Service) { s.Namespace, s.Name = strings.Repeat("n", 60), strings.Repeat("s", 20) }), "metadata.name", "has 81"},
	}
	for _, tt := range tests {
		w, problems := BuildSpec(tt.service, testSettings())
		if len(problems) != 1 || problems[0].Field != tt.field || !strings.Contains(problems[0].Error(), tt.wantText) {
			t.Errorf("%s: got %v, want %q", tt.field, problems, tt.wantText)
		}
		if len(w.Rules)+len(w.Frontends) > 0 {
			t.Errorf("%s: something is desired all the same", tt.field)
		}
	}
}

func TestEveryProblemIsReported(t *testing.T) {
	_, problems := BuildSpec(newService(withAnnotation(IdleTimeout, "x"), withAnnotation(Internal, "x"), withAnnotation(DNSLabel, "X"), asDualStack), testSettings())
	if len(problems) != 3 {
		t.Errorf("%v", problems)
	}
}

// An annotation may have 256 KiB of any content.
func TestAProblemIsShortAndQuoted(t *testing.T) {
	_, problems := BuildSpec(newService(withAnnotation(Internal, strings.Repeat("x\n\x1b[31m", 1000))), testSettings())
	if text := problems[0].Error(); len(text) > 500 || strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

func FuzzDesired(f *testing.F) {
	f.Add(InternalSubnet, "apps", PIPName, "x", true)
	f.Add(PIPPrefixID, subscription, PIPResourceGroup, "rg", false)
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, private bool) {
		s := newService(withAnnotation(name1, value1), withAnnotation(name2, value2), asDualStack)
		if private {
			asInternal(&s)
		}
		w, problems := BuildSpec(s, testSettings())
		if len(problems) > 0 {
			return
		}
		for _, front := range w.Frontends {
			id := lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "g", Name: "n"}, Name: front.Frontend.Name}
			if err := id.Validate(); err != nil {
				t.Errorf("frontend: %v", err)
			}
			if strings.Count(front.Frontend.Subnet, "/") != strings.Count(network, "/")+2 && private {
				t.Errorf("subnet %q", front.Frontend.Subnet)
			}
			if front.PublicIP != nil && front.PublicIP.ID.Validate() != nil {
				t.Errorf("public IP %v", front.PublicIP.ID)
			}
		}
	})
}

func manyTags(n int) string {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("t%d=x", i))
	}
	return strings.Join(pairs, ",")
}

// Behind a Private Link Service with PROXY protocol, the requested probe applies at the node port, because
// kube-proxy does not support the header.
func TestProbesBehindAPrivateLinkServiceWithTheProxyProtocol(t *testing.T) {
	create, proxy, tcp := withAnnotation(PLSCreate, "true"), withAnnotation(PLSProxyProtocol, "true"), withAnnotation(ProbeProtocol, "tcp")
	set := testSettings()
	set.SharedProbe = SharedProbeOf(10256, "/healthz")
	set.Interfaces = true
	https := withPorts(Port{Protocol: "TCP", AppProtocol: "https", Port: 80, NodePort: 30080})
	for _, tt := range []struct {
		about   string
		service Service
		want    string
	}{
		{"Local", newService(asInternal, asLocal, create, proxy, tcp), "Tcp 30080"},
		{"Local, appProtocol", newService(asInternal, asLocal, create, proxy, tcp, https), "Tcp 30080"},
		{"Local, without an annotation", newService(asInternal, asLocal, create, proxy), "Tcp 30080"},
		{"Local, HTTP", newService(asInternal, asLocal, create, proxy, withAnnotation(ProbeProtocol, "http"), withAnnotation(ProbePath, "/live")), "Http 30080/live"},
		{"Local, of the port", newService(asInternal, asLocal, create, proxy, withAnnotation(ofPort(80, portProbeProtocol), "tcp")), "Tcp 30080"},
		{"Local, at a port that is named", newService(asInternal, asLocal, create, proxy, tcp, withAnnotation(ofPort(80, portProbePort), "8080")), "Tcp 8080"},
		{"Local, public", newService(asLocal, create, proxy, tcp), "Tcp 30080"},
		{"Cluster", newService(asInternal, create, proxy, tcp), "Tcp 30080"},
		{"Local, without the PROXY protocol", newService(asInternal, asLocal, create, tcp), "Http 31000/healthz"},
		{"Local, without a Private Link Service", newService(asInternal, asLocal, proxy, tcp), "Http 31000/healthz"},
		{"Cluster, without the PROXY protocol", newService(asInternal, create, tcp), "Http 10256/healthz"},
	} {
		w := buildValidSpec(t, tt.service, set)
		p := w.Probes[0]
		if got := fmt.Sprintf("%s %d%s", p.Protocol, p.Port, p.Path); got != tt.want || len(w.Probes) != 1 {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}
