// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
)

const guides = "../../docs/guide/"

// A quickStart follows a guide: it runs the bash blocks of its page, with kubectl, and with an az and a helm
// that answer what the test expects and fail for any other command.
type quickStart struct {
	*lab
	page string
	// az are the answers to the commands, without "az".
	az map[string]string
}

// readBlocks returns the blocks of a language in a page.
func (q *quickStart) readBlocks(language string) []string {
	q.t.Helper()
	text, err := os.ReadFile(guides + q.page)
	q.must(err)
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) == 0 {
		q.t.Fatalf("%s has no %s block", q.page, language)
	}
	return blocks
}

// shims are az and helm. They log their arguments; az looks up the answer.
var shims = map[string]string{
	"az": `echo "az $*" >>log
awk -F '\t' -v c="$*" '$1 == c { print $2; found = 1 } END { exit !found }' answers ||
  { echo "az $*: the test has no answer" >&2; exit 1; }
`,
	"helm": `echo "helm $*" >>log
`,
}

// prepare fills the current folder of the user.
func (q *quickStart) prepare() {
	q.t.Helper()
	var answers strings.Builder
	for _, command := range slices.Sorted(maps.Keys(q.az)) {
		fmt.Fprintf(&answers, "%s\t%s\n", command, q.az[command])
	}
	q.write("answers", answers.String())
	q.write("log", "")
	q.must(os.MkdirAll(filepath.Join(q.dir, "path"), 0o700))
	for name, script := range shims {
		q.must(os.WriteFile(filepath.Join(q.dir, "path", name), []byte("#!/bin/bash\n"+script), 0o700)) //nolint:gosec // a program
	}
	for link, target := range map[string]string{"path/kubectl": filepath.Join(bin, "kubectl"), "config": "../../config", "charts": "../../charts"} {
		target, err := filepath.Abs(target)
		q.must(err)
		q.must(os.Symlink(target, filepath.Join(q.dir, link)))
	}
	q.t.Cleanup(func() {
		ctx := context.WithoutCancel(q.t.Context())
		for _, obj := range []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-azure"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		} {
			if err := client.IgnoreNotFound(q.cluster.Delete(ctx, obj)); err != nil {
				q.t.Errorf("clear %s: %v", obj.GetName(), err)
			}
		}
	})
}

// run runs a script as the user.
func (q *quickStart) run(script string) {
	q.t.Helper()
	cmd := exec.CommandContext(q.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = q.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(q.dir, "path")+":"+os.Getenv("PATH"), "KUBECONFIG="+q.cluster.admin)
	if out, err := cmd.CombinedOutput(); err != nil {
		q.t.Fatalf("%v in\n%s\n%s", err, script, out)
	}
}

// follow runs the guide. Its last block creates a Service and waits for its address; the controller starts
// before that, with the azure.json of the Secret.
func (q *quickStart) follow() {
	q.t.Helper()
	blocks := q.readBlocks("bash")
	last := len(blocks) - 1
	q.prepare()
	q.run(strings.Join(blocks[:last], "\n"))
	var secret corev1.Secret
	q.must(q.cluster.Get(q.t.Context(), key("weir-system", "weir-azure"), &secret))
	q.write("azure.json", string(secret.Data["azure.json"]))
	if log := q.readLog(); !slices.Contains(log, "helm install weir charts/weir -n weir-system --create-namespace -f values.yaml") {
		q.t.Errorf("the chart is not installed: %q", log)
	}
	q.controller()
	q.run(blocks[last])
}

// readLog returns the commands of az and helm.
func (q *quickStart) readLog() []string {
	q.t.Helper()
	raw, err := os.ReadFile(filepath.Join(q.dir, "log"))
	q.must(err)
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// nodeOf creates the node of a machine.
func (l *lab) nodeOf(name, ip, id string) {
	l.t.Helper()
	name = l.node(name, ip)
	var n corev1.Node
	l.editObject(client.ObjectKey{Name: name}, &n, func() { n.Spec.ProviderID = "azure://" + id })
}

// address returns the address of a Service.
func (l *lab) address(namespace, name string) string {
	l.t.Helper()
	var s corev1.Service
	l.must(l.cluster.Get(l.t.Context(), key(namespace, name), &s))
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		l.t.Fatalf("Service %s has %v", name, s.Status.LoadBalancer.Ingress)
	}
	return s.Status.LoadBalancer.Ingress[0].IP
}

// admits reports whether a security group admits clients of the Internet to a TCP port of an address: the
// first rule that matches decides, and without one the default denies.
func (l *lab) admits(group, ip, port string) bool {
	l.t.Helper()
	body, ok := l.emulator.Get(group)
	if !ok {
		l.t.Fatalf("no security group %s", group)
	}
	type properties struct {
		Access, Direction, Protocol                       string
		Priority                                          int
		SourceAddressPrefix, DestinationAddressPrefix     string
		DestinationPortRange                              string
		SourceAddressPrefixes, DestinationAddressPrefixes []string
		DestinationPortRanges                             []string
	}
	var shown struct {
		Properties struct {
			SecurityRules []struct{ Properties properties }
		}
	}
	l.must(json.Unmarshal(body, &shown))
	rules := shown.Properties.SecurityRules
	slices.SortFunc(rules, func(a, b struct{ Properties properties }) int {
		return cmp.Compare(a.Properties.Priority, b.Properties.Priority)
	})
	has := func(single string, names []string, want ...string) bool {
		return slices.ContainsFunc(append(names, single), func(v string) bool { return v == "*" || slices.Contains(want, v) })
	}
	for _, r := range rules {
		p := r.Properties
		if p.Direction == "Inbound" && slices.Contains([]string{"Tcp", "*"}, p.Protocol) &&
			has(p.SourceAddressPrefix, p.SourceAddressPrefixes, "Internet", "0.0.0.0/0") &&
			has(p.DestinationAddressPrefix, p.DestinationAddressPrefixes, ip, ip+"/32") &&
			has(p.DestinationPortRange, p.DestinationPortRanges, port) {
			return p.Access == "Allow"
		}
	}
	return false
}

// resourcesIn returns the resources below an ARM ID, as Azure shows them.
func (l *lab) resourcesIn(prefix string) map[string]string {
	l.t.Helper()
	var resources []struct {
		ID   string
		Body json.RawMessage
	}
	l.must(json.Unmarshal(l.emulator.Snapshot(), &resources))
	found := map[string]string{}
	for _, r := range resources {
		if strings.HasPrefix(r.ID, prefix) {
			found[r.ID] = string(r.Body)
		}
	}
	return found
}

// expectUnchanged compares resources with what they were, byte for byte.
func (l *lab) expectUnchanged(before map[string]string, prefix string, except ...string) {
	l.t.Helper()
	after := l.resourcesIn(prefix)
	for id, old := range before {
		if !slices.Contains(except, id) && after[id] != old {
			l.t.Errorf("%s is\n%s\nwas\n%s", id, after[id], old)
		}
	}
	if len(after) != len(before) {
		l.t.Errorf("%s has %d resources, had %d", prefix, len(after), len(before))
	}
}

// The cluster of docs/guide/aks/seed.json.
const (
	aksSubscription = "5c0ffee0-0000-4000-8000-000000000001"
	nodeGroup       = "/subscriptions/" + aksSubscription + "/resourceGroups/MC_shop-rg_shop_eastus"
	aksNetwork      = nodeGroup + "/providers/Microsoft.Network"
	aksSecurity     = aksNetwork + "/networkSecurityGroups/aks-agentpool-24666711-nsg"
	aksVNet         = aksNetwork + "/virtualNetworks/aks-vnet-24666711"
	weirGroup       = "/subscriptions/" + aksSubscription + "/resourceGroups/shop-weir"
	clientID        = "aaaaaaaa-0000-4000-8000-000000000002"
	principalID     = "bbbbbbbb-0000-4000-8000-000000000003"
)

// assignment is the command that assigns a role of the guides.
func assignment(scope, role string) string {
	return "role assignment create --role " + role + " --scope " + scope + " --assignee-object-id " + principalID + " --assignee-principal-type ServicePrincipal"
}

// newAKS returns an AKS cluster with the given subnet; "" is that of AKS's own network.
func newAKS(t *testing.T, opts armemu.Options, subnet string) *quickStart {
	t.Helper()
	opts.StrictResourceGroups = true
	q := &quickStart{lab: newLab(t, opts), page: "aks.md"}
	seed, err := os.ReadFile(guides + "aks/seed.json")
	q.must(err)
	q.must(q.emulator.Restore(seed))
	const show = "aks show -g shop-rg -n shop --query "
	network := cmp.Or(strings.Split(subnet, "/subnets/")[0], aksVNet)
	q.az = map[string]string{
		"account show --query id -o tsv":                                               aksSubscription,
		"account show --query tenantId -o tsv":                                         "tenant",
		show + "location -o tsv":                                                       "eastus",
		show + "nodeResourceGroup -o tsv":                                              "MC_shop-rg_shop_eastus",
		show + "agentPoolProfiles[0].vnetSubnetId -o tsv":                              subnet,
		show + "oidcIssuerProfile.issuerUrl -o tsv":                                    "https://eastus.oic.prod-aks.azure.com/tenant/key/",
		"network nsg list -g MC_shop-rg_shop_eastus --query [0].name -o tsv":           "aks-agentpool-24666711-nsg",
		"network nsg list -g MC_shop-rg_shop_eastus --query [0].id -o tsv":             aksSecurity,
		"network vnet list -g MC_shop-rg_shop_eastus --query [0].subnets[0].id -o tsv": aksVNet + "/subnets/aks-subnet",
		"group create -n shop-weir -l eastus":                                          "",
		"identity create -g shop-weir -n weir -l eastus":                               "",
		"identity show -g shop-weir -n weir --query clientId -o tsv":                   clientID,
		"identity show -g shop-weir -n weir --query principalId -o tsv":                principalID,
		"role definition create --role-definition azure-role.json":                     "",
		"role definition create --role-definition azure-role-subscription.json":        "",
		assignment("/subscriptions/"+aksSubscription, "Weir subscription"):             "",
		assignment(weirGroup, "Weir"):                                                  "", assignment(network, "Weir"): "", assignment(aksSecurity, "Weir"): "",
		"aks update -g shop-rg -n shop --enable-oidc-issuer --enable-workload-identity": "",
		"identity federated-credential create -g shop-weir --identity-name weir --name weir --issuer https://eastus.oic.prod-aks.azure.com/tenant/key/" +
			" --subject system:serviceaccount:weir-system:weir --audiences api://AzureADTokenExchange": "",
	}
	q.must(q.emulator.Put(weirGroup, []byte(`{"location":"eastus"}`))) // az group create
	for i, ip := range []string{"10.224.0.4", "10.224.0.5"} {
		q.nodeOf(fmt.Sprintf("aks-%d", i), ip, fmt.Sprintf("%s/providers/Microsoft.Compute/virtualMachineScaleSets/aks-nodepool1-24666711-vmss/virtualMachines/%d", nodeGroup, i))
	}
	return q
}

// Followed step by step, the guide ends with a public address that the security group admits, on a load balancer in
// Weir's own resource group. Everything of AKS is as before, byte for byte, but for a rule in its security
// group, where the rule of AKS is unchanged.
func TestTheQuickStartOnAKS(t *testing.T) {
	runParallel(t)
	q := newAKS(t, armemu.Options{}, "")
	before := q.resourcesIn(nodeGroup)
	if len(before) < 10 || !strings.Contains(before[aksNetwork+"/loadBalancers/kubernetes"], "aksOutboundRule") {
		t.Fatalf("the seed has %d resources", len(before))
	}
	q.follow()
	if missing := unusedAnswers(q.az, q.readLog()); len(missing) > 0 {
		t.Errorf("the guide does not run %q", missing)
	}
	ip := q.address("shop", "web")
	if !q.admits(aksSecurity, ip, "80") || q.admits(aksSecurity, ip, "443") {
		t.Errorf("the security group admits other ports than 80 of %s", ip)
	}
	if !q.admits(aksSecurity, "203.0.113.20", "443") {
		t.Error("the rule of AKS's Service is gone")
	}
	balancer := weirGroup + "/providers/Microsoft.Network/loadBalancers/weir"
	q.eventually("members", func() error {
		if got, want := q.addresses(balancer, "kubernetes"), []string{"10.224.0.4", "10.224.0.5"}; !slices.Equal(got, want) {
			return fmt.Errorf("the pool has %v, want %v", got, want)
		}
		return nil
	})
	if body, _ := q.emulator.Get(balancer); !bytes.Contains(body, []byte(`"disableOutboundSnat":true`)) {
		t.Errorf("connections of nodes leave by Weir's load balancer: %s", body)
	}
	doctor := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), "doctor", "--kubeconfig", q.cluster.weir,
		"--config", filepath.Join(q.dir, "azure.json"), "--azure-endpoint", q.url) // as helm test does
	if out, err := doctor.CombinedOutput(); err != nil {
		t.Errorf("weir doctor: %v\n%s", err, out)
	}
	q.expectUnchanged(before, nodeGroup, aksSecurity)
	expectScopes(t, q.emulator.Calls(), weirGroup, aksVNet, aksSecurity)

	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	q.must(q.cluster.Delete(t.Context(), s))
	q.gone("Service web", s)
	if q.admits(aksSecurity, ip, "80") || !q.admits(aksSecurity, "203.0.113.20", "443") {
		t.Error("after the Service is deleted, the security group is not as before")
	}
	q.expectUnchanged(before, nodeGroup, aksSecurity)
}

// unusedAnswers returns the commands that were not run.
func unusedAnswers(answers map[string]string, log []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(answers)), func(c string) bool { return slices.Contains(log, "az "+c) })
}

// expectScopes checks that all writes are in the scopes on which the guide assigns the role.
func expectScopes(t *testing.T, calls []armemu.Call, scopes ...string) {
	t.Helper()
	writes := 0
	for _, c := range calls {
		if c.Kind != armemu.KindPut && c.Kind != armemu.KindPatch && c.Kind != armemu.KindDelete {
			continue
		}
		writes++
		if !slices.ContainsFunc(scopes, func(s string) bool { return strings.HasPrefix(strings.ToLower(c.Path), strings.ToLower(s)) }) {
			t.Errorf("%s %s is outside of the scopes of the role", c.Method, c.Path)
		}
	}
	if writes < 3 {
		t.Errorf("%d writes", writes)
	}
}

// With node resource group lockdown and a virtual network of the user's own, a public Service gets no address,
// and its event names the deny assignment; the guide's settings for lockdown serve an internal Service.
func TestAKSWithLockdown(t *testing.T) {
	runParallel(t)
	const own = "/subscriptions/" + aksSubscription + "/resourceGroups/shop-rg/providers/Microsoft.Network/virtualNetworks/shop-vnet"
	q := newAKS(t, armemu.Options{LockedGroups: []string{"mc_shop-rg_shop_eastus"}, Role: azureRole()}, own+"/subnets/nodes")
	q.must(q.emulator.Put(own, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.224.0.0/12"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.224.0.0/16"}}]}}`)))
	before := q.resourcesIn(nodeGroup)
	blocks := q.readBlocks("bash")
	last := len(blocks) - 1
	q.prepare()
	q.run(strings.Join(blocks[:last], "\n"))
	q.run(strings.Join(strings.SplitAfter(blocks[last], "\nEOF\n")[:1], "")) // without waiting for the address
	weir := q.controller()
	q.eventually("event", func() error {
		if out := q.kubectl("-n", "shop", "get", "events", "-o", "custom-columns=M:.message", "--no-headers"); !strings.Contains(out, "DenyAssignmentAuthorizationFailed") {
			return errors.New(out)
		}
		return nil
	})
	q.eventually("weir status", func() error {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), "status", "-A", "--kubeconfig", q.cluster.admin).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "DenyAssignmentAuthorizationFailed: the access is denied because of the deny assignment") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	var s corev1.Service
	q.must(q.cluster.Get(t.Context(), key("shop", "web"), &s))
	if len(s.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("the Service has %v, which no group admits", s.Status.LoadBalancer.Ingress)
	}
	weir.Stop()
	q.deleteServices()

	// The guide's azure.json and Service for lockdown.
	q.run(strings.Join(blocks[:2], "\n") + "\ncat > azure.json <<EOF\n" + q.readBlocks("json")[0] + "EOF\n")
	q.write("internal.yaml", q.readBlocks("yaml")[0])
	q.run("kubectl apply -f internal.yaml")
	q.controller()
	q.run(`kubectl -n shop wait --for=jsonpath='{.status.loadBalancer.ingress[0].ip}' service/internal --timeout=5m`)
	if ip := q.address("shop", "internal"); !strings.HasPrefix(ip, "10.224.") {
		t.Errorf("the internal Service has %s", ip)
	}
	q.eventually("members", func() error {
		if got := q.addresses(weirGroup+"/providers/Microsoft.Network/loadBalancers/weir-internal", "kubernetes"); len(got) != 2 {
			return fmt.Errorf("the pool has %v", got)
		}
		return nil
	})
	q.expectUnchanged(before, nodeGroup)
}

// Followed on a self-managed cluster, next to the load balancer of the Azure cloud provider, the guide ends
// with a public address that the security group admits; that load balancer is unchanged.
func TestTheQuickStartOnASelfManagedCluster(t *testing.T) {
	runParallel(t)
	q := &quickStart{lab: newLab(t, armemu.Options{StrictResourceGroups: true}), page: "self-managed.md"}
	const (
		rg       = "/subscriptions/" + aksSubscription + "/resourceGroups/shop-rg"
		theirs   = rg + "/providers/Microsoft.Network/loadBalancers/kubernetes"
		group    = rg + "/providers/Microsoft.Network/networkSecurityGroups/shop-nodes-nsg"
		vnet     = rg + "/providers/Microsoft.Network/virtualNetworks/shop-vnet"
		ip       = rg + "/providers/Microsoft.Network/publicIPAddresses/egress"
		identity = rg + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/weir"
	)
	for _, r := range [][2]string{
		{rg, `{"location":"eastus"}`},
		{group, `{"location":"eastus","properties":{"securityRules":[]}}`},
		{vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.1.0.0/16"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.1.0.0/24","networkSecurityGroup":{"id":"` + group + `"}}}]}}`},
		{ip, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","ipAddress":"203.0.113.10"}}`},
		{theirs, `{"location":"eastus","sku":{"name":"Standard"},"properties":{
			"frontendIPConfigurations":[{"name":"egress","properties":{"publicIPAddress":{"id":"` + ip + `"}}}],"backendAddressPools":[{"name":"kubernetes"}],
			"outboundRules":[{"name":"egress","properties":{"protocol":"All","frontendIPConfigurations":[{"id":"` + theirs + `/frontendIPConfigurations/egress"}],"backendAddressPool":{"id":"` + theirs + `/backendAddressPools/kubernetes"}}}]}}`},
	} {
		q.must(q.emulator.Put(r[0], []byte(r[1])))
	}
	const show = "identity show -g shop-rg -n weir --query "
	q.az = map[string]string{
		"account show --query id -o tsv":                                            aksSubscription,
		"account show --query tenantId -o tsv":                                      "tenant",
		"group show -n shop-rg --query location -o tsv":                             "eastus",
		"identity create -g shop-rg -n weir -l eastus":                              "",
		show + "id -o tsv":                                                          identity,
		show + "clientId -o tsv":                                                    clientID,
		show + "principalId -o tsv":                                                 principalID,
		"vmss list -g shop-rg --query [].name -o tsv":                               "workers",
		"vmss identity assign -g shop-rg -n workers --identities " + identity:       "",
		"vm list -g shop-rg --query [].name -o tsv":                                 "control-plane-0",
		"vm identity assign -g shop-rg -n control-plane-0 --identities " + identity: "",
		"role definition create --role-definition azure-role.json":                  "",
		"role definition create --role-definition azure-role-subscription.json":     "",
		assignment("/subscriptions/"+aksSubscription, "Weir subscription"):          "",
		assignment(rg, "Weir"):                                                      "",
	}
	q.nodeOf("worker-0", "10.1.0.10", rg+"/providers/Microsoft.Compute/virtualMachineScaleSets/workers/virtualMachines/0")
	before := q.resourcesIn(theirs)
	q.follow()
	if missing := unusedAnswers(q.az, q.readLog()); len(missing) > 0 {
		t.Errorf("the guide does not run %q", missing)
	}
	if address := q.address("shop", "web"); !q.admits(group, address, "80") {
		t.Errorf("the security group does not admit port 80 of %s", address)
	}
	q.eventually("members", func() error {
		if got := q.addresses(rg+"/providers/Microsoft.Network/loadBalancers/weir", "kubernetes"); !slices.Equal(got, []string{"10.1.0.10"}) {
			return fmt.Errorf("the pool has %v", got)
		}
		return nil
	})
	q.expectUnchanged(before, theirs)
	expectScopes(t, q.emulator.Calls(), rg)
}

// The manifests of the Azure cloud provider turn off cloud-node: a list of --controllers in a guide that lacks
// it would turn that controller on.
func TestGuidesKeepControllersOff(t *testing.T) {
	found := 0
	pages, err := filepath.Glob(guides + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range regexp.MustCompile(`--controllers=[^\s`+"`"+`)]+`).FindAllString(string(text), -1) {
			if found++; !strings.HasPrefix(list, "--controllers=*,-cloud-node") {
				t.Errorf("%s: %s turns cloud-node on", page, list)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d lists", found)
	}
}

// The Bicep of the guide for AKS is consistent: modules and files exist, each gets exactly the parameters that
// it declares, and it trusts the ServiceAccount that the commands trust.
func TestTheBicepOfTheQuickStart(t *testing.T) {
	const dir = "../../config/bicep/"
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	names := func(text, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	main, page := read(dir+"aks.bicep"), read(guides+"aks.md")
	modules := regexp.MustCompile(`(?ms)^module \w+ '([^']+)' = .*?^  params: \{\n(.*?)^  \}`).FindAllStringSubmatch(main, -1)
	if len(modules) != 2 {
		t.Fatalf("%d modules", len(modules))
	}
	for _, m := range modules {
		want, got := names(read(dir+m[1]), `(?m)^param (\w+) `), names(m[2], `(?m)^    (\w+):`)
		if !slices.Equal(got, want) {
			t.Errorf("%s gets %v, has %v", m[1], got, want)
		}
	}
	want := names(main, `(?m)^param (\w+) string(?: = '')?$`)
	_, after, _ := strings.Cut(page, "--template-file config/bicep/aks.bicep --parameters")
	command, _, _ := strings.Cut(after, "```")
	if got := names(command, `(\w+)="`); !slices.Equal(got, want) {
		t.Errorf("the guide gives %v, the file has %v", got, want)
	}
	for _, file := range names(main, `loadJsonContent\('([^']+)'\)`) {
		role, err := armemu.ParseRole([]byte(read(dir + file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range role.Actions {
			if role.Name != "Weir" && !strings.HasSuffix(action, "/read") && !strings.HasSuffix(action, "/health/action") {
				t.Errorf("%s allows %s in the whole subscription", file, action)
			}
		}
	}
	credential := read(dir + "identity.bicep")
	for _, part := range []string{"system:serviceaccount:weir-system:weir", "api://AzureADTokenExchange"} {
		if !strings.Contains(credential, "'"+part+"'") || !strings.Contains(page, part) {
			t.Errorf("no %s", part)
		}
	}
}
