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

func spell(tags map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		pairs = append(pairs, key+"="+tags[key])
	}
	return strings.Join(pairs, " ")
}

// shown is a part of a Spec as formatted by show.
type shown struct {
	about   string
	service Service
	show    func(Spec) string
	want    string
}

func showsAll(t *testing.T, tests []shown) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			if got := tt.show(desired(t, tt.service, settings())); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func theRule(w Spec) string {
	r := w.Rules[0]
	reset := "nil"
	if r.TCPReset != nil {
		reset = fmt.Sprint(*r.TCPReset)
	}
	return fmt.Sprintf("%s %d->%d floating %v idle %d reset %s", r.Transport, r.FrontendPort, r.BackendPort, r.FloatingIP, r.IdleMinutes, reset)
}

func theProbe(w Spec) string {
	if len(w.Probes) == 0 {
		return "none"
	}
	p := w.Probes[0]
	return fmt.Sprintf("%s %d %s every %d s, %d", p.Protocol, p.Port, p.Path, p.IntervalSeconds, p.Threshold)
}

func theFrontend(w Spec) string {
	f := w.Frontends[0].Frontend
	return fmt.Sprintf("%s in %s, %v static %v", f.Name, strings.TrimPrefix(f.Subnet, network), f.PrivateIP, f.Static)
}

func thePublicIP(w Spec) string {
	p := w.Frontends[len(w.Frontends)-1].PublicIP
	return fmt.Sprintf("%s/%s named %v %v", p.ID.ResourceGroup, p.ID.Name, p.Named, p.Address)
}

func theLabel(w Spec) string {
	p := w.Frontends[0].PublicIP
	return fmt.Sprintf("%q %v, tagged %v", p.DNSLabel, p.SetsDNSLabel, p.Tags[TagDNSLabel] != "")
}

// Annotations of frontends and addresses.
func TestAnnotationsOfAddresses(t *testing.T) {
	prefixID := subscription + "/resourceGroups/net/providers/Microsoft.Network/publicIPPrefixes/p"
	showsAll(t, []shown{
		{"internal", web(internal), theFrontend, owner + " in /subnets/nodes, invalid IP static false"},
		{"internal in another subnet", web(internal, with(InternalSubnet, "apps")), theFrontend, owner + "-apps in /subnets/apps, invalid IP static false"},
		{"internal with an address", web(internal, with(IPv4, "10.0.0.9")), theFrontend, owner + " in /subnets/nodes, 10.0.0.9 static true"},
		{"internal with spec.loadBalancerIP", web(internal, func(s *Service) { s.LoadBalancerIP = "10.0.0.8" }), theFrontend, owner + " in /subnets/nodes, 10.0.0.8 static true"},
		{"the annotation goes first", web(internal, with(IPv4, "10.0.0.9"), func(s *Service) { s.LoadBalancerIP = "10.0.0.8" }), theFrontend, owner + " in /subnets/nodes, 10.0.0.9 static true"},
		{"false is public", web(with(Internal, "False")), thePublicIP, "rg/kubernetes-" + owner + " named false invalid IP"},
		{"public IP by name", web(with(PIPName, "mine")), thePublicIP, "rg/mine named true invalid IP"},
		{"public IPv6 by name", web(dual, with(PIPName, "mine"), with(PIPNameIPv6, "mine6")), thePublicIP, "rg/mine6 named true invalid IP"},
		{"public IP by address", web(with(IPv4, "20.0.0.9")), thePublicIP, "rg/kubernetes-" + owner + " named false 20.0.0.9"},
		{"resource group", web(with(PIPResourceGroup, "net"), with(PIPName, "mine")), thePublicIP, "net/mine named true invalid IP"},
		{"prefix", web(with(PIPPrefixID, prefixID)), func(w Spec) string { return w.Frontends[0].PublicIP.Prefix }, prefixID},
		{"prefix for IPv6", web(dual, with(PIPPrefixIDIPv6, prefixID)), func(w Spec) string { return w.Frontends[0].PublicIP.Prefix + w.Frontends[1].PublicIP.Prefix }, prefixID},
		{"tags", web(with(PIPTags, "team = shop, cost=,k8s-azure-service=other,Weir-allowed-namespaces=*")), func(w Spec) string { return spell(w.Frontends[0].PublicIP.Tags) },
			"cost= k8s-azure-cluster-name=kubernetes k8s-azure-service=shop/web team=shop"},
		{"tags with other capitals", web(with(PIPTags, "K8S-Azure-Service=x,K8s-azure-cluster-name=y")), func(w Spec) string { return spell(w.Frontends[0].PublicIP.Tags) },
			"k8s-azure-cluster-name=kubernetes k8s-azure-service=shop/web"},
		{"IP tags", web(with(PIPIPTags, "RoutingPreference=Internet")), func(w Spec) string { return spell(w.Frontends[0].PublicIP.IPTags) }, "RoutingPreference=Internet"},
		{"DNS label", web(with(DNSLabel, "shop-web")), theLabel, `"shop-web" true, tagged true`},
		{"empty DNS label", web(with(DNSLabel, "")), theLabel, `"" true, tagged false`},
		{"no DNS label", web(), theLabel, `"" false, tagged false`},
	})
}

// Annotations of rules.
func TestAnnotationsOfRules(t *testing.T) {
	showsAll(t, []shown{
		{"no floating IP", web(with(DisableFloatingIP, "true")), theRule, "Tcp 80->30080 floating false idle 4 reset true"},
		{"idle timeout", web(with(IdleTimeout, " 15 ")), theRule, "Tcp 80->80 floating true idle 15 reset true"},
		{"no TCP reset", web(with(DisableTCPReset, "true")), theRule, "Tcp 80->80 floating true idle 4 reset false"},
		{"high availability ports", web(internal, with(HAPorts, "true")), theRule, "All 0->0 floating true idle 4 reset true"},
		{"client IP", web(func(s *Service) { s.ClientIP = true }), func(w Spec) string { return string(w.Rules[0].Distribution) }, "SourceIP"},
		{"no rule for a port", web(with(ofPort(80, portNoRule), "true")), func(w Spec) string { return fmt.Sprint(len(w.Rules), len(w.Probes)) }, "0 0"},
		{"configurations", web(with(Configurations, "lb-1, lb-2,")), func(w Spec) string { return fmt.Sprint(w.Configurations) }, "[lb-1 lb-2]"},
	})
}

// Annotations of probes.
func TestAnnotationsOfProbes(t *testing.T) {
	showsAll(t, []shown{
		{"no probe for a port", web(with(ofPort(80, portNoProbe), "true")), theProbe, "none"},
		{"probe protocol", web(with(ProbeProtocol, "HTTP")), theProbe, "Http 30080 / every 5 s, 2"},
		{"appProtocol goes first", web(with(ProbeProtocol, "tcp"), ports(Port{Protocol: "TCP", AppProtocol: "https", Port: 80, NodePort: 30080})), theProbe, "Https 30080 / every 5 s, 2"},
		{"an appProtocol that no probe speaks", web(with(ProbePath, "/x"), ports(Port{Protocol: "TCP", AppProtocol: "kubernetes.io/h2c", Port: 80, NodePort: 30080})), theProbe, "Tcp 30080  every 5 s, 2"},
		{"the port's protocol goes before both", web(with(ofPort(80, portProbeProtocol), "http"), with(ProbeProtocol, "tcp"), ports(Port{Protocol: "TCP", AppProtocol: "https", Port: 80, NodePort: 30080})), theProbe, "Http 30080 / every 5 s, 2"},
		{"path", web(with(ProbeProtocol, "http"), with(ProbePath, "/live")), theProbe, "Http 30080 /live every 5 s, 2"},
		{"a path means nothing to TCP", web(with(ProbePath, "/live")), theProbe, "Tcp 30080  every 5 s, 2"},
		{"the port's path", web(with(ProbeProtocol, "http"), with(ProbePath, "/live"), with(ofPort(80, portProbePath), "/ready")), theProbe, "Http 30080 /ready every 5 s, 2"},
		{"interval and number", web(with(ProbeInterval, "10"), with(ProbeThreshold, "3")), theProbe, "Tcp 30080  every 10 s, 3"},
		{"the port's interval and number", web(with(ProbeInterval, "10"), with(ofPort(80, portProbeInterval), "20"), with(ofPort(80, portProbeThreshold), "4")), theProbe, "Tcp 30080  every 20 s, 4"},
		{"probe port by number", web(with(ofPort(80, portProbePort), "10256"), with(ofPort(80, portProbeProtocol), "http")), theProbe, "Http 10256 / every 5 s, 2"},
		{"probe port by name", web(with(ofPort(80, portProbePort), "health"), ports(Port{Name: "http", Protocol: "TCP", Port: 80, NodePort: 1}, Port{Name: "health", Protocol: "TCP", Port: 81, NodePort: 2})), theProbe, "Tcp 2  every 5 s, 2"},
		{"probe port by a port of the Service", web(with(ofPort(80, portProbePort), "80")), theProbe, "Tcp 30080  every 5 s, 2"},
		{"UDP", web(ports(Port{Protocol: "UDP", Port: 53, NodePort: 30053})), theProbe, "none"},
		{"UDP with a probe port", web(ports(Port{Protocol: "UDP", Port: 53, NodePort: 30053}), with(ofPort(53, portProbePort), "8080")), theProbe, "Tcp 8080  every 5 s, 2"},
		{"Local", web(local, with(ProbeProtocol, "tcp"), with(ProbePath, "/x")), theProbe, "Http 31000 /healthz every 5 s, 2"},
		{"Local with interval", web(local, with(ProbeInterval, "15")), theProbe, "Http 31000 /healthz every 15 s, 2"},
		{"Local with a port of its own", web(local, with(ofPort(80, portProbePort), "10256"), with(ofPort(80, portProbePath), "/healthz")), theProbe, "Http 10256 /healthz every 5 s, 2"},
	})
}

// A problem names the annotation and the allowed values, and nothing is desired.
func TestBadValues(t *testing.T) {
	tests := []struct {
		service Service
		field   string
		says    string
	}{
		{web(with(Internal, "yes")), Internal, `is "yes": want "true" or "false"`},
		{web(internal, with(InternalSubnet, "../x")), InternalSubnet, "the name of a subnet"},
		{web(internal, with(InternalSubnet, strings.Repeat("s", 60))), InternalSubnet, "at most 80"},
		{web(internal, with(IPv4, "fd00::1")), IPv4, "an IPv4 address"},
		{web(internal, with(IPv4, "10.0.0")), IPv4, "an IPv4 address"},
		{web(internal, dual, with(IPv6, "fe80::1%eth0")), IPv6, "an IPv6 address"},
		{web(internal, func(s *Service) { s.LoadBalancerIP = "no" }), "spec.loadBalancerIP", "an IPv4 address"},
		{web(with(PIPName, "a/b")), PIPName, "the name of a public IP"},
		{web(with(PIPName, "mine"), with(IPv4, "20.0.0.9")), PIPName, "no address beside it"},
		{web(with(PIPResourceGroup, "a/b")), PIPResourceGroup, "the name of a resource group"},
		{web(with(PIPPrefixID, "p")), PIPPrefixID, "the id of a public IP prefix"},
		{web(with(PIPPrefixID, subscription+"/resourceGroups/net/providers/Microsoft.Network/publicIPAddresses/p")), PIPPrefixID, "the id of a public IP prefix"},
		{web(with(PIPTags, "team")), PIPTags, `pairs like "a=b,c=d"`},
		{web(with(PIPTags, manyTags(49))), PIPTags, "there are 51, and Azure takes 50"},
		{web(ports(Port{Protocol: "TCP", Port: 80})), "port 80: nodePort", "no_probe_rule"},
		{web(with(PIPTags, "a<b=c")), PIPTags, "without <"},
		{web(with(PIPTags, "a="+strings.Repeat("x", 257))), PIPTags, "at most 256"},
		{web(with(PIPIPTags, "RoutingPreference=")), PIPIPTags, "RoutingPreference=Internet"},
		{web(with(DNSLabel, "Shop")), DNSLabel, "lower-case"},
		{web(with(AdditionalIPs, "20.0.0.1, here")), AdditionalIPs, "an IPv4 address"},
		{web(with(IdleTimeout, "3")), IdleTimeout, "from 4 to 100"},
		{web(with(IdleTimeout, "101")), IdleTimeout, "from 4 to 100"},
		{web(with(IdleTimeout, "4.5")), IdleTimeout, "a whole number"},
		{web(with(HAPorts, "true")), HAPorts, "an internal load balancer"},
		{web(with(ProbeProtocol, "udp")), ProbeProtocol, `"tcp", "http" or "https"`},
		{web(with(ofPort(80, portProbeProtocol), "icmp")), ofPort(80, portProbeProtocol), `"tcp", "http" or "https"`},
		{web(with(ofPort(80, portProbePort), "70000")), ofPort(80, portProbePort), "1 to 65535"},
		{web(with(ofPort(80, portProbePort), "nobody")), ofPort(80, portProbePort), "name or number of a port"},
		{web(with(ProbeInterval, "4")), ProbeInterval, "from 5 to"},
		{web(with(ProbeThreshold, "1")), ProbeThreshold, "from 2 to"},
		{web(with(ProbeInterval, "60")), ProbeInterval, "below 120 seconds, and it is 120"},
		{web(with(ProbeProtocol, "http"), with(ProbePath, "live")), ProbePath, `begins with "/"`},
		{web(with(ofPort(80, portNoRule), "1")), ofPort(80, portNoRule), `"true" or "false"`},
		{web(ports(Port{Protocol: "SCTP", Port: 90})), "port 90: protocol", "TCP or UDP"},
		{web(with(DisableFloatingIP, "true"), with(ofPort(80, portNoProbe), "true"), ports(Port{Protocol: "TCP", Port: 80})), "port 80: nodePort", "allocateLoadBalancerNodePorts"},
		{web(local, func(s *Service) { s.Namespace, s.Name = strings.Repeat("n", 60), strings.Repeat("s", 20) }), "metadata.name", "has 81"},
	}
	for _, tt := range tests {
		w, problems := Desired(tt.service, settings())
		if len(problems) != 1 || problems[0].Field != tt.field || !strings.Contains(problems[0].Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", tt.field, problems, tt.says)
		}
		if len(w.Rules)+len(w.Frontends) > 0 {
			t.Errorf("%s: something is desired all the same", tt.field)
		}
	}
}

func TestEverythingThatIsWrongIsNamed(t *testing.T) {
	_, problems := Desired(web(with(IdleTimeout, "x"), with(Internal, "x"), with(DNSLabel, "X"), dual), settings())
	if len(problems) != 3 {
		t.Errorf("%v", problems)
	}
}

// An annotation may have 256 KiB of any content.
func TestAProblemIsShortAndQuoted(t *testing.T) {
	_, problems := Desired(web(with(Internal, strings.Repeat("x\n\x1b[31m", 1000))), settings())
	if text := problems[0].Error(); len(text) > 500 || strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

func FuzzDesired(f *testing.F) {
	f.Add(InternalSubnet, "apps", PIPName, "x", true)
	f.Add(PIPPrefixID, subscription, PIPResourceGroup, "rg", false)
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, private bool) {
		s := web(with(name1, value1), with(name2, value2), dual)
		if private {
			internal(&s)
		}
		w, problems := Desired(s, settings())
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
	create, proxy, tcp := with(PLSCreate, "true"), with(PLSProxyProtocol, "true"), with(ProbeProtocol, "tcp")
	set := settings()
	set.SharedProbe = SharedProbeOf(10256, "/healthz")
	set.Interfaces = true
	https := ports(Port{Protocol: "TCP", AppProtocol: "https", Port: 80, NodePort: 30080})
	for _, tt := range []struct {
		about   string
		service Service
		want    string
	}{
		{"Local", web(internal, local, create, proxy, tcp), "Tcp 30080"},
		{"Local, appProtocol", web(internal, local, create, proxy, tcp, https), "Tcp 30080"},
		{"Local, without an annotation", web(internal, local, create, proxy), "Tcp 30080"},
		{"Local, HTTP", web(internal, local, create, proxy, with(ProbeProtocol, "http"), with(ProbePath, "/live")), "Http 30080/live"},
		{"Local, of the port", web(internal, local, create, proxy, with(ofPort(80, portProbeProtocol), "tcp")), "Tcp 30080"},
		{"Local, at a port that is named", web(internal, local, create, proxy, tcp, with(ofPort(80, portProbePort), "8080")), "Tcp 8080"},
		{"Local, public", web(local, create, proxy, tcp), "Tcp 30080"},
		{"Cluster", web(internal, create, proxy, tcp), "Tcp 30080"},
		{"Local, without the PROXY protocol", web(internal, local, create, tcp), "Http 31000/healthz"},
		{"Local, without a Private Link Service", web(internal, local, proxy, tcp), "Http 31000/healthz"},
		{"Cluster, without the PROXY protocol", web(internal, create, tcp), "Http 10256/healthz"},
	} {
		w := desired(t, tt.service, set)
		p := w.Probes[0]
		if got := fmt.Sprintf("%s %d%s", p.Protocol, p.Port, p.Path); got != tt.want || len(w.Probes) != 1 {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}
