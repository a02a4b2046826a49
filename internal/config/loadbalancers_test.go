// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// loadWith loads a file with the required keys and these, as YAML.
func loadWith(t *testing.T, lines string) (Config, error) {
	t.Helper()
	c, _, err := Load(write(t, "subscriptionId: s\nresourceGroup: rg\n"+lines))
	return c, err
}

const list = "multipleStandardLoadBalancerConfigurations: "

func TestMostRules(t *testing.T) {
	for given, want := range map[string]int{
		"":                                   250,
		"maximumLoadBalancerRuleCount: null": 250,
		list + "[]":                          250,
		list + "[{name: a}]":                 250,
		"maximumLoadBalancerRuleCount: 10":   10,
		"maximumLoadBalancerRuleCount: 1500": 1500,
		list + "[{name: a}]\nmaximumLoadBalancerRuleCount: 300": 300,
	} {
		c, err := loadWith(t, given)
		if err != nil || c.MaxRules() != want || *c.MaximumRules != want {
			t.Errorf("%q: %d, %v; want %d", given, c.MaxRules(), err, want)
		}
	}
	if n := (LoadBalancers{}).MaxRules(); n != 250 {
		t.Errorf("not loaded: %d", n)
	}
}

func TestSharedProbe(t *testing.T) {
	for given, want := range map[string]string{
		"": "false servicenodeport 10256 /healthz",
		"clusterServiceLoadBalancerHealthProbeMode: ServiceNodePort":                                                                  "false servicenodeport 10256 /healthz",
		"clusterServiceLoadBalancerHealthProbeMode: ''\nclusterServiceSharedLoadBalancerHealthProbePath: ''":                          "false servicenodeport 10256 /healthz",
		"clusterServiceLoadBalancerHealthProbeMode: SHARED":                                                                           "true shared 10256 /healthz",
		"clusterServiceSharedLoadBalancerHealthProbePort: 65535":                                                                      "false servicenodeport 65535 /healthz",
		"clusterServiceSharedLoadBalancerHealthProbePath: /livez\nclusterServiceSharedLoadBalancerHealthProbePort: 1":                 "false servicenodeport 1 /livez",
		"clusterServiceSharedLoadBalancerHealthProbePath: null\nclusterServiceSharedLoadBalancerHealthProbePort: null\ntagsMap: null": "false servicenodeport 10256 /healthz",
	} {
		c, err := loadWith(t, given)
		if got := fmt.Sprint(c.HasSharedProbe(), " ", c.ProbeMode, " ", c.ProbePort(), " ", c.ProbePath()); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", given, got, err, want)
		}
	}
}

// The member type does not depend on the kind of machines. Without the key existing pools retain theirs, and the
// default is that of cloud-provider-azure: interfaces, but addresses with several load balancers and for pools of
// Services.
func TestMembershipSetting(t *testing.T) {
	const key = "loadBalancerBackendPoolConfigurationType: "
	for given, want := range map[string]string{
		"":                         "true nodeIPConfiguration false",
		key + "''":                 "true nodeIPConfiguration false",
		key + "null":               "true nodeIPConfiguration false",
		"localServicePools: nodes": "true nodeIPConfiguration false",
		"localServicePools: own":   "false nodeIP false",
		list + "[{name: a}]":       "false nodeIP false",
		list + "[]":                "true nodeIPConfiguration false",
		"localServicePools: OWN\n" + key + "nodeIP":                "false nodeIP true",
		list + "[{name: a}]\n" + key + "nodeIPConfiguration":       "true nodeIPConfiguration true",
		"localServicePools: Nodes\n" + key + "nodeIPConfiguration": "true nodeIPConfiguration true",
		key + "NODEIP":                                     "false nodeIP true",
		key + "nodeIPConfiguration":                        "true nodeIPConfiguration true",
		key + "NodeIpConfiguration":                        "true nodeIPConfiguration true",
		"vmType: vmss\n" + key + "nodeIPConfiguration":     "true nodeIPConfiguration true",
		"vmType: vmssflex\n" + key + "nodeIPConfiguration": "true nodeIPConfiguration true",
		"vmType: standard\n" + key + "nodeIPConfiguration": "true nodeIPConfiguration true",
	} {
		c, err := loadWith(t, given)
		if got := fmt.Sprint(c.HasInterfaceMembers(), " ", c.MemberType(), " ", c.ShouldConvertPools()); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", given, got, err, want)
		}
	}
}

// Each error names the key, the value and the fix.
func TestInvalidLoadBalancers(t *testing.T) {
	selector := func(text string) string { return list + "[{name: a, serviceLabelSelector: " + text + "}]" }
	tests := []struct{ given, key, wantText string }{
		{"loadBalancerSku: Basic", "loadBalancerSku", `is "Basic": set "standard", or remove the key: Azure retired Basic load balancers on 30 September 2025`},
		{"loadBalancerSku: gateway", "loadBalancerSku", `is "gateway": set "standard", or remove the key`},
		{"loadBalancerMigration: later", "loadBalancerMigration", `is "later": want "automatic" or "manual", or remove the key for "automatic"`},
		{"loadBalancerBackendPoolConfigurationType: podIP", "loadBalancerBackendPoolConfigurationType", `is "podIP": set "nodeIP" or "nodeIPConfiguration", or remove the key to retain what pools hold: flows of a load balancer of Weir's go to nodes`},
		{"localServicePools: each", "localServicePools", `is "each": want "nodes" or "own", or remove the key for what cloud-provider-azure does`},
		{"localServicePools: own\nloadBalancerBackendPoolConfigurationType: nodeIPConfiguration", "localServicePools", `is "own", and "loadBalancerBackendPoolConfigurationType" is "nodeIPConfiguration": a pool of a Service's own holds addresses: set the latter to "nodeIP", or remove the former`},
		{"loadBalancerBackendPoolConfigurationType: nic", "loadBalancerBackendPoolConfigurationType", `is "nic": want "nodeIP" or "nodeIPConfiguration"`},
		{"loadBalancerName: a/b", "loadBalancerName", `is "a/b": load balancer name "a/b": want 1 to 80`},
		{"loadBalancerName: " + strings.Repeat("n", 72), "loadBalancerName", `nnn-internal": want 1 to 80`},
		{"loadBalancerName: a-", "loadBalancerName", `name "a-": want`},
		{"loadBalancerName: a\n" + list + "[{name: b}]", "loadBalancerName", `is "a" beside "multipleStandardLoadBalancerConfigurations"`},
		{"maximumLoadBalancerRuleCount: 0", "maximumLoadBalancerRuleCount", "is 0: want 1 to 1500"},
		{"maximumLoadBalancerRuleCount: -1", "maximumLoadBalancerRuleCount", "is -1: want 1 to 1500"},
		{"maximumLoadBalancerRuleCount: 1501", "maximumLoadBalancerRuleCount", "is 1501: want 1 to 1500"},
		{"availabilityZones: ['1', '1']", "availabilityZones", `is ["1" "1"]: want different zones, each a digit from 1 to 9, or [] for none, or remove the key for all zones of the region`},
		{"availabilityZones: ['eastus-1']", "availabilityZones", `is ["eastus-1"]: want different zones`},
		{"availabilityZones: [1]", "availabilityZones[0]", `want a string, got a number: put it between double quotes`},
		{"availabilityZones: '1'", "availabilityZones", `want a list, got a string`},
		{"clusterServiceLoadBalancerHealthProbeMode: each", "clusterServiceLoadBalancerHealthProbeMode", `is "each": want "servicenodeport" or "shared"`},
		{"clusterServiceSharedLoadBalancerHealthProbePort: 0", "clusterServiceSharedLoadBalancerHealthProbePort", "is 0: want 1 to 65535, or remove the key for 10256"},
		{"clusterServiceSharedLoadBalancerHealthProbePort: 65536", "clusterServiceSharedLoadBalancerHealthProbePort", "is 65536"},
		{"clusterServiceSharedLoadBalancerHealthProbePath: healthz", "clusterServiceSharedLoadBalancerHealthProbePath", `is "healthz": want a path that begins with "/"`},
		{"clusterServiceSharedLoadBalancerHealthProbePath: /a b", "clusterServiceSharedLoadBalancerHealthProbePath", `without spaces`},
		{"clusterServiceSharedLoadBalancerHealthProbePath: /" + strings.Repeat("p", 2048), "clusterServiceSharedLoadBalancerHealthProbePath", `at most 2048`},

		{list + "[{name: a}, {primaryVMSet: b}]", "multipleStandardLoadBalancerConfigurations[1].name", "is missing: set it"},
		{list + "[null]", "multipleStandardLoadBalancerConfigurations[0].name", "is missing"},
		{list + "[{name: a b}]", "multipleStandardLoadBalancerConfigurations[0].name", `is "a b"`},
		{list + "[{name: lB}, {name: a}, {name: Lb}]", "multipleStandardLoadBalancerConfigurations[2].name", `is "Lb", which another entry has, too`},
		{list + "[{name: lb-Internal}, {name: LB}]", "multipleStandardLoadBalancerConfigurations[0].name", `is "lb-Internal", as the internal load balancer of "LB" is named: choose another name`},
		{list + "[{name: lb}, {name: lb-internal}]", "multipleStandardLoadBalancerConfigurations[1].name", `of "lb" is named`},
		{list + "[{name: a, primaryVMSet: oNE}, {name: b, primaryVMSet: One}]", "multipleStandardLoadBalancerConfigurations[1].primaryVMSet", `is "One", which is that of "a", too`},

		{selector("{matchLabels: {a b: c}}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchLabels", `"a b" is no key of a label`},
		{selector("{matchLabels: {x/y/z: c}}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchLabels", `"x/y/z" is no key of a label`},
		{selector("{matchLabels: {Not.DNS/z: c}}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchLabels", `is no key of a label`},
		{selector("{matchLabels: {" + strings.Repeat("p", 254) + "/z: c}}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchLabels", `is no key of a label`},
		{selector("{matchLabels: {a: '-'}}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchLabels.a", `is "-": want the value of a label`},
		{selector("{matchLabels: {a: " + strings.Repeat("v", 64) + "}}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchLabels.a", `at most 63`},
		{selector("{matchExpressions: [{key: a, operator: in, values: [b]}]}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchExpressions[0].operator", `is "in": want "In", "NotIn", "Exists" or "DoesNotExist"`},
		{selector("{matchExpressions: [{key: a}]}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchExpressions[0].operator", `is "": want`},
		{selector("{matchExpressions: [{key: a, operator: NotIn}]}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchExpressions[0].values", "is empty: operator NotIn needs at least one value"},
		{selector("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchExpressions[0].values", `is ["b"]: operator Exists has no values`},
		{selector("{matchExpressions: [{key: a, operator: In, values: [b, c d]}]}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchExpressions[0].values[1]", `is "c d"`},
		{selector("{matchExpressions: [{operator: Exists}]}"), "multipleStandardLoadBalancerConfigurations[0].serviceLabelSelector.matchExpressions[0].key", `"" is no key of a label`},
		{list + "[{name: a, serviceNamespaceSelector: {matchLabels: {'': c}}}]", "multipleStandardLoadBalancerConfigurations[0].serviceNamespaceSelector.matchLabels", "is no key of a label"},
		{list + "[{name: a, nodeSelector: {matchLabels: {'': c}}}]", "multipleStandardLoadBalancerConfigurations[0].nodeSelector.matchLabels", "is no key of a label"},
	}
	for _, tt := range tests {
		_, err := loadWith(t, tt.given)
		if err == nil || !strings.Contains(err.Error(), `key "`+tt.key+`"`) || !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s:\n got %v\nwant key %q, %s", tt.given, err, tt.key, tt.wantText)
		}
	}
}

// Migration requires the SKU and is disabled by manual.
func TestMigrationSetting(t *testing.T) {
	for given, want := range map[string]bool{
		"cloud: AzurePublicCloud": false, "loadBalancerSku: standard": true, "loadBalancerSku: Standard\nloadBalancerMigration: Automatic": true,
		"loadBalancerSku: standard\nloadBalancerMigration: MANUAL": false, "loadBalancerMigration: automatic": false,
	} {
		cfg, err := loadWith(t, given)
		if err != nil || cfg.ShouldMigrate() != want {
			t.Errorf("%s: %t, %v", given, cfg.ShouldMigrate(), err)
		}
	}
}

// Unusual but valid: entries without a node selector, and a name with the internal suffix that belongs to no
// other entry.
func TestValidLoadBalancers(t *testing.T) {
	for _, given := range []string{
		"loadBalancerSku: ''\nloadBalancerBackendPoolConfigurationType: ''",
		"loadBalancerName: " + strings.Repeat("n", 71),
		list + "[{name: a}, {name: b}]",
		list + "[{name: x-internal}, {name: b-internal}]",
		list + "[{name: a, primaryVMSet: v, nodeSelector: {matchLabels: {zone: ''}}}]",
		list + "[{name: a, nodeSelector: {matchLabels: {kubernetes.io/os: linux, " + strings.Repeat("p", 253) + "/z: c}, matchExpressions: [{key: a, operator: DoesNotExist}, {key: a, operator: NotIn, values: ['']}]}}]",
	} {
		if _, err := loadWith(t, given); err != nil {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// {} selects everything, so a missing selector must stay nil.
func TestNoSelectorIsNotAnEmptyOne(t *testing.T) {
	for given, want := range map[string]bool{"": false, ", nodeSelector: null": false, ", nodeSelector: {}": true, ", nodeSelector: {matchLabels: null}": true} {
		c, err := loadWith(t, list+"[{name: a"+given+"}]")
		if err != nil || (c.Configurations[0].NodeSelector != nil) != want {
			t.Errorf("%q: %v, %v", given, c.Configurations[0].NodeSelector, err)
		}
	}
}

func TestCheckClusterName(t *testing.T) {
	tests := []struct{ given, cluster, wantText string }{
		{"", "kubernetes", ""},
		{"loadBalancerName: other", "kubernetes", ""},
		{list + "[{name: lb-2}, {name: Kubernetes}]", "kubernetes", ""},
		{list + "[{name: lb-2}, {name: lb-3}]", "prod", `none of the names ["lb-2" "lb-3"] is "prod", the cluster's: give it to one entry, or set --cluster-name`},
	}
	for _, tt := range tests {
		c, err := loadWith(t, tt.given)
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckClusterName(tt.cluster)
		if (err == nil) != (tt.wantText == "") || err != nil && !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s: got %v, want %q", tt.given, err, tt.wantText)
		}
	}
}

// Normalize must not modify the caller's slice.
func TestNormalizeLeavesTheCallersList(t *testing.T) {
	own := []LoadBalancerConfiguration{{Name: "a"}}
	c := Config{Cloud: Cloud{SubscriptionID: "s", ResourceGroup: "rg"}, LoadBalancers: LoadBalancers{Configurations: own}}
	if err := c.Normalize(); err != nil || own[0].AllowServicePlacement != nil || !c.Configurations[0].AllowsPlacement() || c.Configurations[0].AllowServicePlacement == nil {
		t.Errorf("%v: %+v became %+v", err, own, c.Configurations)
	}
}

func TestLogListsCreatedLoadBalancers(t *testing.T) {
	for given, want := range map[string]string{
		"": `loadBalancers="the cluster's"`, "loadBalancerName: lb": "loadBalancers=lb", list + "[{name: a}, {name: b}]": "loadBalancers=a,b",
		"location: eastus": "location=eastus", "subnetName: nodes": "subnet=nodes", "maximumLoadBalancerRuleCount: 7": "maxRules=7",
		"clusterServiceLoadBalancerHealthProbeMode: shared": "sharedProbe=true", "disableOutboundSNAT: true": "outboundSNAT=false", "tags: a=b": "tags=1",
		"loadBalancerBackendPoolConfigurationType: nodeIPConfiguration": "pools=nodeIPConfiguration",
		"availabilityZones: null": `zones="all of the region"`, "availabilityZones: []": "zones=none", "availabilityZones: ['3', '1']": "zones=1,3",
	} {
		c, err := loadWith(t, given)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "", c)
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q: no %s in %s", given, want, log.String())
		}
	}
}
