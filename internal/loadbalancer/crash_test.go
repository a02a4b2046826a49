// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
)

// deed is a change of the cluster during which the process is killed.
type deed struct {
	about string
	on    []string // configurations; empty means the default one
	before,
	after string // Services in script syntax
	deleted []string
	then    []string // deleted afterwards, possibly without a running process
	guarded bool     // with a security group
	foreign bool     // with a pool of another controller
	// gone are Services deleted before. Foreign parts are removed after them: a pool, or an address in the pool
	// of joined.
	gone   []string
	joined string
	// remains is set if the address of joined is not removed.
	remains bool
	// rejects makes Azure reject all load balancer writes. group is the final security group if it differs from
	// what Services want; "new" means ranges.
	rejects bool
	group   string
	// links enables Private Link Services. connected are private endpoints connected before, more than one
	// round disconnects.
	links     bool
	connected string
}

const sharesPublished = `
shop/a: {ports: 80, azure-pip-name: mine, azure-pls-create: "true"}
shop/b: {ports: 81, azure-pip-name: mine, azure-pls-create: "true", azure-pls-visibility: "*"}`

var deeds = []deed{
	{about: "who may connect", guarded: true, before: `
shop/a: {ports: 80}
shop/b: {ports: 80, azure-disable-load-balancer-floating-ip: "true"}
shop/c: {ports: 80, ranges: 192.0.2.0/24}`, after: `
shop/a: {ports: 80, ranges: 192.0.2.0/24}
shop/b: {ports: 81, azure-load-balancer-internal: "true"}
shop/d: {ports: 80}`, deleted: []string{"shop/c"}},
	{about: "who may connect, beside what is invalid", guarded: true, before: `
shop/a: {ports: 80}
shop/b: {ports: 443, azure-pip-name: kubernetes-a001}
shop/c: {ports: 80, azure-disable-load-balancer-floating-ip: "true"}
shop/d: {ports: 8080, families: IPv4 IPv6, ranges: 10.0.0.0/8}`, after: `
shop/a: {ports: 81, ranges: 192.0.2.0/24 192.0.2.1/24, azure-load-balancer-tcp-idle-timeout: 3}
shop/c: {ports: 81, azure-load-balancer-internal: perhaps}
shop/d: {ports: 8080, families: IPv4 IPv6, ranges: 10.1.0.0/16 203.0.113.0/24, azure-load-balancer-tcp-idle-timeout: 3}`, group: `
  Allow Tcp from Internet to 198.18.0.2 at 443
  Allow Tcp from new/16 to 198.18.0.4 at 8080
  Allow Tcp from new/24 to 198.18.0.2 at 80`},
	{about: "who may connect, while Azure takes no load balancer", guarded: true, rejects: true, before: `
shop/a: {ports: 80}
shop/b: {ports: 443, azure-pip-name: kubernetes-a001}
shop/c: {ports: 80}`, after: `
shop/a: {ports: 81, azure-allowed-service-tags: AzureCloud, azure-deny-all-except-load-balancer-source-ranges: "true"}
shop/c: {ports: 80, azure-load-balancer-internal: "true"}`, group: `
  Allow Tcp from AzureCloud to 198.18.0.2 at 80
  Allow Tcp from Internet to 198.18.0.2 at 443
  Deny Tcp from * to 198.18.0.2 at 80`},
	{about: "who may connect and where, while Azure takes no load balancer", guarded: true, rejects: true, on: []string{"kubernetes", "lb-2"}, before: `
shop/a: {ports: 80, azure-load-balancer-configurations: kubernetes}
shop/b: {ports: 80, azure-load-balancer-configurations: kubernetes}`, after: `
shop/a: {ports: 80, azure-load-balancer-configurations: lb-2, ranges: 192.0.2.0/24, azure-deny-all-except-load-balancer-source-ranges: "true"}`, group: `
  Allow Tcp from Internet to 198.18.0.3 at 80
  Allow Tcp from new/24 to 198.18.0.2 at 80
  Deny * from * to 198.18.0.2 at *`},
	{about: "three Services appear", after: `
shop/a: {ports: 80}
shop/b: {ports: 80, local: yes, azure-dns-label-name: b}
shop/c: {ports: 80, families: IPv4 IPv6}`},
	{about: "rules, a label and a policy change", before: `
shop/a: {ports: 80, azure-dns-label-name: one}
shop/b: {ports: 80, local: yes}`, after: `
shop/a: {ports: 80 443, azure-dns-label-name: two}
shop/b: {ports: 81}`},
	{about: "public becomes internal", before: `
shop/a: {ports: 80}
shop/b: {ports: 80}`, after: `
shop/a: {ports: 80, azure-load-balancer-internal: "true"}`},
	{about: "internal becomes public, and its load balancer goes", before: `
shop/a: {ports: 80, azure-load-balancer-internal: "true"}`, after: `
shop/a: {ports: 80}`},
	{about: "a Service moves with its address", on: []string{"kubernetes", "lb-2"}, before: `
shop/a: {ports: 80, azure-load-balancer-configurations: kubernetes}
shop/b: {ports: 80, azure-load-balancer-configurations: kubernetes}`, after: `
shop/a: {ports: 80, azure-load-balancer-configurations: lb-2}`},
	{about: "the public IP is in another resource group", before: `
shop/a: {ports: 80, azure-load-balancer-resource-group: net}`, after: `
shop/a: {ports: 80, azure-load-balancer-resource-group: other}`},
	{about: "from another resource group to internal", before: `
shop/a: {ports: 80, azure-load-balancer-resource-group: net}`, after: `
shop/a: {ports: 80, azure-load-balancer-internal: "true"}`},
	{about: "a public IP by name, and back", before: `
shop/a: {ports: 80}
shop/b: {ports: 80, azure-pip-name: mine, azure-dns-label-name: label}`, after: `
shop/a: {ports: 80, azure-pip-name: mine}
shop/b: {ports: 81}`},
	{about: "both families become the second", before: `
shop/a: {ports: 80, families: IPv6 IPv4}
shop/b: {ports: 80}`, after: `
shop/a: {ports: 80, families: IPv6}`},
	{about: "the last one goes, and a frontend stays for a pool of others", foreign: true, before: `
shop/a: {ports: 80}`, deleted: []string{"shop/a"}},
	{about: "one comes where a frontend has stayed", foreign: true, before: `
shop/a: {ports: 80}
shop/b: {ports: 81}`, deleted: []string{"shop/a", "shop/b"}, after: `
shop/c: {ports: 80}`},
	{about: "what stayed for others goes: a pool with their address", joined: "kubernetes/shop-a", before: `
shop/a: {ports: 80, local: yes}`, gone: []string{"shop/a"}},
	{about: "what stayed for others goes, with a public IP in another resource group", joined: "kubernetes/shop-a", before: `
shop/a: {ports: 80, local: yes, azure-load-balancer-resource-group: net}`, gone: []string{"shop/a"}},
	{about: "what stayed for others goes, on an internal load balancer", joined: "kubernetes-internal/shop-a", guarded: true, before: `
shop/a: {ports: 80, local: yes, azure-load-balancer-internal: "true", ranges: 192.0.2.0/24}
shop/b: {ports: 80, local: yes}`, gone: []string{"shop/a"}},
	{about: "what stays for others of an internal load balancer, while it is deleted", joined: "kubernetes-internal/shop-a", remains: true, before: `
shop/a: {ports: 80, local: yes, azure-load-balancer-internal: "true"}
shop/b: {ports: 80, azure-load-balancer-internal: "true"}`, deleted: []string{"shop/a", "shop/b"}},
	{about: "what stays for others, with a public IP in another resource group", joined: "kubernetes/shop-a", remains: true, guarded: true, before: `
shop/a: {ports: 80, local: yes, azure-load-balancer-resource-group: net}
shop/b: {ports: 80, azure-load-balancer-resource-group: net}`, deleted: []string{"shop/a", "shop/b"}},
	{about: "internal and public in turn, with others in its pool", joined: "kubernetes-internal/shop-a", remains: true, guarded: true, before: `
shop/a: {ports: 80, local: yes, azure-load-balancer-internal: "true", ranges: 192.0.2.0/24}`, after: `
shop/a: {ports: 80, local: yes, azure-load-balancer-resource-group: net}`},
	{about: "who shares an internal address goes, with others in its pool", joined: "kubernetes-internal/shop-b", remains: true, guarded: true, before: `
shop/a: {ports: 80, azure-load-balancer-internal: "true", azure-load-balancer-ipv4: 10.0.0.50, azure-disable-load-balancer-floating-ip: "true"}
shop/b: {ports: 81, local: yes, azure-load-balancer-internal: "true", azure-load-balancer-ipv4: 10.0.0.50, ranges: 192.0.2.0/24}`, deleted: []string{"shop/b"}, after: `
shop/a: {ports: 82, azure-load-balancer-internal: "true"}`},
	{about: "what stayed for others goes: their pool", foreign: true, before: `
shop/a: {ports: 80}
shop/b: {ports: 80, azure-load-balancer-internal: "true"}`, gone: []string{"shop/a"}},
	{about: "one family goes, and its frontend stays", before: `
shop/a: {ports: 80, families: IPv6 IPv4}`, after: `
shop/a: {ports: 80, families: IPv6}`},
	{about: "a public IP that is not used is deleted", on: []string{"kubernetes", "lb-2"}, before: `
shop/a: {ports: 80, azure-load-balancer-configurations: kubernetes}
shop/b: {ports: 81, azure-pip-name: kubernetes-a001, azure-load-balancer-configurations: kubernetes}
shop/a: {ports: 80, azure-load-balancer-configurations: lb-2}
shop/a: {ports: 80, azure-load-balancer-configurations: kubernetes}`, after: `
shop/a: {ports: 80, allow-removal: yes, azure-load-balancer-tcp-idle-timeout: 5, azure-load-balancer-configurations: kubernetes}`},
	{about: "one of two goes", before: `
shop/a: {ports: 80, local: yes}
shop/b: {ports: 80}`, deleted: []string{"shop/a"}},
	{about: "all go", before: `
shop/a: {ports: 80, local: yes}
shop/b: {ports: 80, azure-load-balancer-internal: "true"}
shop/c: {ports: 80, azure-load-balancer-resource-group: net}
shop/d: {ports: 80, azure-pip-name: mine, azure-dns-label-name: label}`, deleted: []string{"shop/a", "shop/b", "shop/c", "shop/d"}},
	{about: "the owner of a shared address goes", before: `
shop/a: {ports: 80}
shop/b: {ports: 81, azure-pip-name: kubernetes-a001}`, deleted: []string{"shop/a"}},
	{about: "all who share an address go", before: `
shop/a: {ports: 80}
shop/b: {ports: 81, azure-pip-name: kubernetes-a001}
shop/c: {ports: 82, azure-pip-name: kubernetes-a001}
shop/d: {ports: 80}`, deleted: []string{"shop/a", "shop/b", "shop/c"}},
	{about: "frontends are published", links: true, after: `
shop/a: {ports: 80, azure-pls-create: "true", azure-pls-ip-configuration-subnet: links}
shop/b: {ports: 80, azure-load-balancer-internal: "true", azure-pls-create: "true"}`},
	{about: "what publishes them changes, is replaced, and goes", links: true, before: `
shop/a: {ports: 80, azure-pls-create: "true"}
shop/b: {ports: 80, azure-pls-create: "true"}
shop/c: {ports: 80, azure-pls-create: "true"}
shop/d: {ports: 80, azure-pls-create: "true"}`, connected: "pls-a003", after: `
shop/a: {ports: 80, azure-pls-create: "true", azure-pls-visibility: "*"}
shop/b: {ports: 80, azure-pls-create: "true", azure-pls-name: web}
shop/c: {ports: 80}
shop/d: {ports: 80, azure-load-balancer-internal: "true", azure-pls-create: "true"}`},
	{about: "what publishes, and the public IP, are in other resource groups, and all go", links: true, guarded: true, before: `
shop/a: {ports: 80, azure-pls-create: "true", azure-pls-resource-group: links, azure-load-balancer-resource-group: net}
shop/b: {ports: 80, azure-pls-create: "true", azure-load-balancer-internal: "true", ranges: 192.0.2.0/24}`, deleted: []string{"shop/a", "shop/b"}},
	{about: "what publishes goes to another resource group, as does the public IP", links: true, before: `
shop/a: {ports: 80, azure-pls-create: "true", azure-pls-resource-group: links, azure-load-balancer-resource-group: net}`, after: `
shop/a: {ports: 80, azure-pls-create: "true", azure-pls-resource-group: other, azure-load-balancer-resource-group: other}`},
	{about: "published Services go", links: true, before: `
shop/a: {ports: 80, azure-pls-create: "true"}
shop/b: {ports: 80, azure-pls-create: "true", azure-pls-resource-group: other}`, connected: "pls-a001", deleted: []string{"shop/a", "shop/b"}},
	{about: "the owner of what publishes a shared frontend goes", links: true, before: `
shop/a: {ports: 80, azure-pip-name: mine}
shop/b: {ports: 81, azure-pip-name: mine, azure-pls-create: "true"}
shop/c: {ports: 82, azure-pip-name: mine, azure-pls-create: "true"}`, deleted: []string{"shop/b"}},
	{about: "of two who share a published frontend the owner goes first", links: true, before: sharesPublished, connected: "pls-a001", deleted: []string{"shop/a"}, then: []string{"shop/b"}},
	{about: "of two who share a published frontend the owner goes last", links: true, before: sharesPublished, connected: "pls-a001", deleted: []string{"shop/b"}, then: []string{"shop/a"}},
	{about: "two who share a published frontend go together", links: true, before: sharesPublished, connected: "pls-a001", deleted: []string{"shop/a", "shop/b"}},
}

// Wherever the process is killed, the next one reaches the same end: no leftovers, no lost address, no foreign
// change.
func TestKilledAtEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, d := range deeds {
		t.Run(d.about, func(t *testing.T) {
			t.Parallel()
			want, calls := play(t, d)
			if group := strings.Join(admissionRule.FindAllString(want, -1), ""); d.group != "" && strings.TrimSpace(group) != strings.TrimSpace(d.group) {
				t.Fatalf("the security group has\n%s\nwant%s", group, d.group)
			}
			if calls < 3 {
				t.Fatalf("%d calls: that is no deed", calls)
			}
			for nth := 1; nth <= calls; nth++ {
				for _, after := range []bool{false, true} {
					second := 0
					if after { // the next one is killed too
						second = 1 + nth%4
					}
					got, _ := play(t, d, killPoint{nth, after}, killPoint{second, !after})
					if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
						t.Fatalf("killed at call %d of %d (after it: %v), and at call %d of the next life: -without +with\n%s", nth, calls, after, second, diff)
					}
				}
			}
			t.Logf("%d calls, each before and after", calls)
		})
	}
}

// play runs a deed and kills the process at the given points. It returns the final state of Azure and the
// number of calls.
func play(t *testing.T, d deed, kills ...killPoint) (end string, calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(set *loadbalancer.Settings) {
			if d.links {
				linked(set)
			}
		})
		for _, name := range d.on {
			if len(s.settings.Configurations) > 0 && s.settings.Configurations[0].Name != name {
				s.settings.Configurations = append(s.settings.Configurations, configuration(name))
			}
		}
		if d.guarded {
			s.settings.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
			s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
		}
		s.stop()
		s.launch()
		if d.joined != "" {
			keepsPools(s)
		}
		defer s.close()
		s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		s.put("loadBalancers/theirs", `{location: eastus, sku: {name: Standard}, properties: {frontendIPConfigurations: [{name: theirs, properties: {subnet: {id: ~/virtualNetworks/net/subnets/nodes}}}], backendAddressPools: [{name: a001}]}}`)
		for text := range strings.Lines(d.before) { // in order
			s.applyAll(text)
			s.settle(time.Hour)
		}
		if d.foreign {
			s.put("loadBalancers/kubernetes/backendAddressPools/theirs", "properties: {}")
		}
		if d.joined != "" {
			s.others(d.joined, "10.0.7.7", joins)
		}
		for _, name := range d.gone {
			s.remove(name)
			s.settle(time.Hour)
		}
		if len(d.gone) > 0 && d.foreign {
			s.take("kubernetes", "backendAddressPools", "theirs")
		}
		if d.joined != "" && !d.remains {
			s.others(d.joined, "10.0.7.7", leaves)
		}
		for _, endpoint := range []string{"pe1", "pe2", "pe3"} {
			if d.connected != "" {
				_, err := s.emu.Connect(network+"/privateLinkServices/"+d.connected, inGroup+"/providers/Microsoft.Network/privateEndpoints/"+endpoint)
				must(err)
			}
		}
		known := s.known()
		s.mu.Lock()
		s.sent = 0
		s.mu.Unlock()
		s.arm(kills)
		limit := time.Hour
		if d.rejects {
			must(s.emu.SetFaults("rules:\n- {match: {method: PUT, path: \"" + network + "/loadBalancers/*\"}, action: {status: 400, code: QuotaExceeded}}\n"))
			limit = 20 * time.Second // after that it is retried forever
		}
		s.applyAll(d.after)
		for _, name := range d.deleted {
			s.remove(name)
		}
		s.settle(limit)
		for _, name := range d.then {
			s.remove(name)
		}
		s.settle(limit)
		if len(d.gone) > 0 {
			s.deleteUnneeded()
		}
		s.mu.Lock()
		calls = s.sent
		s.mu.Unlock()
		for i := range kills {
			s.arm(kills[i+1:])
			s.restart()
			s.settle(limit)
			if len(d.gone) > 0 {
				s.deleteUnneeded()
				time.Sleep(10 * time.Minute)
				s.deleteKnown()
			}
		}
		if err := s.check(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // Azure completes running operations
		end = unranked(anonymous(s.cloud().spell(), known))
		if d.joined != "" {
			end += "left pools: " + s.left.spell()
		}
	})
	return end, calls
}

// arm sets the first kill point, counted from now.
func (s *stage) arm(kills []killPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill = killPoint{}
	if len(kills) > 0 && kills[0].nth > 0 {
		s.kill = killPoint{s.sent + kills[0].nth, kills[0].after}
	}
}

var addressRule = regexp.MustCompile(`\b(\d+\.\d+\.\d+\.\d+|[0-9a-f]+:[0-9a-f:]+:[0-9a-f:]*)`)

// known returns the addresses assigned so far.
func (s *stage) known() []string { return addressRule.FindAllString(s.cloud().spell(), -1) }

// anonymous replaces all other addresses: which ones Azure assigns depends on the order of requests.
func anonymous(text string, known []string) string {
	return addressRule.ReplaceAllStringFunc(text, func(found string) string {
		if _, err := netip.ParseAddr(found); err != nil || slices.Contains(known, found) {
			return found
		}
		return "new"
	})
}

var rankRule = regexp.MustCompile(`(?m)^  \d+ (Allow|Deny)`)

// admissionRule matches the rules of a security group, without priorities.
var admissionRule = regexp.MustCompile(`(?m)^  (Allow|Deny) .*\n?`)

// unranked sorts security rules without priorities: these depend on the order of arrival.
func unranked(text string) string {
	rest, rules, found := strings.Cut(text, "networkSecurityGroups/nsg\n")
	if !found {
		return text
	}
	lines := strings.Split(rankRule.ReplaceAllString(rules, "  $1"), "\n")
	slices.Sort(lines)
	return rest + strings.Join(lines, "\n")
}
