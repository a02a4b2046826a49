// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/badlink"
	"weir.dev/weir/test/shipped"
)

const examples = "../../examples/"

// applyExample applies a file of examples/ in the namespace, as its user would.
func (l *lab) applyExample(name string) {
	l.t.Helper()
	l.kubectl("-n", l.namespace, "apply", "--server-side", "-f", examples+name)
}

// endpointsOn creates the ready endpoints of a Service.
func (l *lab) endpointsOn(service string, nodes ...string) {
	l.t.Helper()
	l.must(l.cluster.Create(l.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-1", Namespace: l.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints(nodes),
	}))
}

// publicIPs returns the addresses of the public IPs in Azure, by name.
func (l *lab) publicIPs() map[string]string {
	l.t.Helper()
	ips := map[string]string{}
	for id, body := range l.resourcesIn(network + "/publicIPAddresses/") {
		var ip struct{ Properties struct{ IPAddress string } }
		l.must(json.Unmarshal([]byte(body), &ip))
		ips[id[strings.LastIndex(id, "/")+1:]] = ip.Properties.IPAddress
	}
	return ips
}

// The examples of Services get what their comments say.
func TestExamplesOfServices(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.must(l.emulator.Put(vnet, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/48"]}}}`)))
	l.must(l.emulator.Put(securityGroup, []byte(`{"location":"eastus","properties":{"securityRules":[]}}`)))
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefixes":["10.0.0.0/16","fd00::/64"],"networkSecurityGroup":{"id":"`+securityGroup+`"}}}`)))
	l.must(l.emulator.Put(network+"/publicIPAddresses/shop-web", []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)))
	l.must(l.emulator.Put(network+"/loadBalancers/shop-edge", []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[{"name":"edge"}],"backendAddressPools":[{"name":"web","properties":{"virtualNetwork":{"id":"`+vnet+`"}}}]}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","subnetName":"nodes","location":"eastus","securityGroupName":"nsg","loadBalancerBackendPoolConfigurationType":"nodeIP","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	single, two := l.node("n1", "10.0.0.1"), l.node("n2", "10.0.0.2")
	for _, name := range []string{single, two} {
		var n corev1.Node
		l.must(l.cluster.Get(t.Context(), client.ObjectKey{Name: name}, &n))
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: strings.Replace(n.Status.Addresses[0].Address, "10.0.0.", "fd00::", 1)})
		l.must(l.cluster.Status().Update(t.Context(), &n))
	}
	for _, name := range []string{"internal", "static-ip", "local", "dual-stack", "source-ranges", "backendpool-terraform"} {
		l.applyExample(name + ".yaml")
	}
	l.endpointsOn("local", single)
	l.endpointsOn("terraform", two)
	l.controller("--cluster-name", l.namespace)

	if ip := netip.MustParseAddr(l.ingress("internal", 1)[0]); !netip.MustParsePrefix("10.0.0.0/16").Contains(ip) {
		t.Errorf("the internal address is %s", ip)
	}
	internal := l.loadBalancer() + "-internal"
	l.eventually("the pool of the internal load balancer", func() error {
		if got := l.addresses(internal, l.namespace); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2"}) {
			return fmt.Errorf("holds %v", got)
		}
		return nil
	})
	static, local, limited := l.ingress("static-ip", 1)[0], l.ingress("local", 1)[0], l.ingress("source-ranges", 1)[0]
	both := l.ingress("dual-stack", 2)
	if ips := l.publicIPs(); ips["shop-web"] != static || len(ips) != 5 { // Weir has created four
		t.Errorf("static-ip has %s, Azure has %v", static, ips)
	}
	if v4, v6 := netip.MustParseAddr(both[0]), netip.MustParseAddr(both[1]); v4.Is4() == v6.Is4() {
		t.Errorf("dual-stack has %v", both)
	}
	l.becomes(l.namespace, "10.0.0.1", "10.0.0.2")
	l.becomes(l.namespace+"-ipv6", "fd00::1", "fd00::2")
	l.becomes(l.namespace+"-local", "10.0.0.1")
	l.eventually("Terraform's pool", func() error {
		if got := l.addresses(network+"/loadBalancers/shop-edge", "web"); !slices.Equal(got, []string{"10.0.0.2"}) {
			return fmt.Errorf("holds %v", got)
		}
		return nil
	})
	if !l.admits(securityGroup, local, "80") || !l.admits(securityGroup, static, "80") {
		t.Error("clients of the Internet cannot connect to local and static-ip")
	}
	if l.admits(securityGroup, limited, "443") {
		t.Error("source-ranges admits all clients")
	}
	body, _ := l.emulator.Get(securityGroup)
	for _, part := range []string{`"192.0.2.0/24"`, `"198.51.100.7/32"`, limited} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the security group has no %s: %s", part, body)
		}
	}
}

// The example of a Private Link Service publishes the frontend for the subscription.
func TestExampleOfPrivateLink(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.AzureRoles()})
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16","privateLinkServiceNetworkPolicies":"Disabled"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration"}`)
	l.virtualMachine("vm1")
	l.applyExample("private-link.yaml")
	l.controller("--cluster-name", l.namespace)
	l.ingress("private-link", 1)
	l.expectLinkCondition("private-link", "Published", "no connections")
	l.expectInterfaces(l.loadBalancer()+"-internal", l.namespace, "vm1")
	const link = network + "/privateLinkServices/shop-private-link"
	if _, err := l.emulator.Connect(link, "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe"); err != nil {
		t.Error(err)
	}
	if body, _ := l.emulator.Get(link); !strings.Contains(string(body), `"Approved"`) {
		t.Errorf("the connection is not approved: %s", body)
	}
	if _, err := l.emulator.Connect(link, "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe"); err == nil {
		t.Error("another subscription connects")
	}
}

// The example of a Provision creates its objects in the cluster of its kubeconfig.
func TestExampleOfAProvision(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	p.setTargetBehind(badlink.Network{BytesPerSecond: 10 << 20}, p.cluster) // targets are not on loopback
	var edge corev1.Secret
	p.must(p.cluster.Get(t.Context(), key(p.namespace, "edge"), &edge))
	p.does("-n", p.namespace, "create", "secret", "generic", "store-17", "--from-file=kubeconfig="+p.write("store-17.kubeconfig", string(edge.Data["kubeconfig"])))
	t.Cleanup(func() { p.mayFail("delete", "namespace", "store", "--wait=false") })
	p.applyExample("provision.yaml")
	p.provisioner("--leader-elect=false")
	p.waitState("store-17", v1alpha1.ProvisionSucceeded, 1)
	var settings corev1.ConfigMap
	p.must(p.cluster.Get(t.Context(), key("store", "settings"), &settings))
	if settings.Data["store"] != "17" {
		t.Errorf("%v", settings.Data)
	}
}

// The overlay changes the controller of config/, and the API server accepts all of it.
func TestExampleOfAnOverlay(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k", examples+"overlay")
	var controller *appsv1.Deployment
	for text := range strings.SplitSeq(l.kubectl("kustomize", examples+"overlay"), "\n---\n") {
		var d appsv1.Deployment
		l.must(yaml.Unmarshal([]byte(text), &d))
		if d.Kind == "Deployment" && d.Name == "weir-controller" {
			controller = &d
		}
	}
	if controller == nil {
		t.Fatal("no Deployment weir-controller")
	}
	c := controller.Spec.Template.Spec.Containers[0]
	if c.Image != "registry.example.com/weir:v0.1.0" || *controller.Spec.Replicas != 3 || !slices.Contains(c.Args, "--cluster-name=prod") || controller.Spec.Template.Labels["azure.workload.identity/use"] != "true" {
		t.Errorf("%s", l.kubectl("kustomize", examples+"overlay"))
	}
}

// The example of a Gateway, with a class of this controller alone.
func TestExampleOfAGateway(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.installGatewayAPI()
	l.must(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
	}))
	l.controller("--cluster-name", l.namespace, "--gateway-api")
	l.node("n1", "10.0.0.1")
	manifests, err := os.ReadFile(examples + "gateway.yaml")
	l.must(err)
	const class = "gatewayClassName: weir\n"
	if !strings.Contains(string(manifests), class) {
		t.Fatalf("no %q", class)
	}
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	l.must(os.WriteFile(file, []byte(strings.Replace(string(manifests), class, "gatewayClassName: "+l.namespace+"\n", 1)), 0o600))
	t.Cleanup(func() { l.deleteGateway("edge") })
	l.kubectl("-n", l.namespace, "apply", "--server-side", "-f", file)

	l.programmed("edge")
	l.expectRoute("web", "ResolvedRefs", "ResolvedRefs")
	var backend corev1.Service
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "edge-web"), &backend))
	l.expectPorts(fmt.Sprintf("tcp 443 %d", backend.Spec.Ports[0].NodePort))
	l.becomes(l.namespace, "10.0.0.1")
}

// Each example is applied by a test of this file, or of tools/chart, and listed in the README.
func TestEachExampleIsApplied(t *testing.T) {
	runParallel(t)
	entries, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(examples + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); name != "README.md" {
			names = append(names, name)
			if !strings.Contains(string(readme), "("+name+")") {
				t.Errorf("the README does not list %s", name)
			}
		}
	}
	want := []string{"backendpool-terraform.yaml", "dual-stack.yaml", "gateway.yaml", "internal.yaml", "local.yaml", "overlay", "pod-monitor.yaml", "private-link.yaml", "provision.yaml", "source-ranges.yaml", "static-ip.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("examples/ has %v; tests apply %v", names, want)
	}
}
