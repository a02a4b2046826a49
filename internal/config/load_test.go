// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const canary = "canary-secret-51c0"

func write(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t *testing.T, content string) (Config, Ignored) {
	t.Helper()
	c, ignored, err := Load(write(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return c, ignored
}

const whole = `{
	"cloud": "AzureChinaCloud",
	"tenantId": "t", "subscriptionId": "s", "aadClientId": "c", "aadClientSecret": "` + canary + `",
	"aadClientCertPath": "/cert", "aadClientCertPassword": "` + canary + `",
	"useManagedIdentityExtension": true, "userAssignedIdentityID": "u",
	"aadFederatedTokenFile": "/token", "useFederatedWorkloadIdentityExtension": false,
	"resourceGroup": "rg", "vnetName": "v", "vnetResourceGroup": "vrg", "networkResourceSubscriptionID": "ns", "networkResourceTenantID": "T",
	"loadBalancerResourceGroup": "lrg", "excludeMasterFromStandardLB": false,
	"resourceManagerEndpoint": "https://arm.example",
	"location": "chinaeast2", "extendedLocationName": "beijing1", "extendedLocationType": "edgezone", "tags": "team=shop,cost=1", "tagsMap": {"Cost": "2,3"}, "subnetName": "nodes", "securityGroupName": "nsg", "securityGroupResourceGroup": "nrg", "requireEffectiveRestrictions": true,
	"loadBalancerSku": "STANDARD", "loadBalancerMigration": "Manual", "loadBalancerBackendPoolConfigurationType": "nodeip", "localServicePools": "Own",
	"disableOutboundSNAT": true, "retainAddresses": true, "maximumLoadBalancerRuleCount": 300, "availabilityZones": [],
	"privateLinkServiceResourceGroup": "plsrg", "maximumPrivateLinkServiceCount": 20, "disablePrivateLinkServiceNetworkPolicies": true, "podSubnetNames": ["pods"],
	"clusterServiceLoadBalancerHealthProbeMode": "Shared", "clusterServiceSharedLoadBalancerHealthProbePort": 10257,
	"clusterServiceSharedLoadBalancerHealthProbePath": "/livez",
	"multipleStandardLoadBalancerConfigurations": [{"name": "kubernetes"}, {
		"name": "lb-2", "primaryVMSet": "vmss-2", "allowServicePlacement": false,
		"serviceLabelSelector": {"matchLabels": {"example.com/tier": "front"}},
		"serviceNamespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
		"nodeSelector": {}
	}],
	"loadBalancerBackendPoolUpdateIntervalInSeconds": 5, "loadBalancerBackendPoolUpdateMaxRetries": 0, "loadBalancerBackendPoolUpdateWriteSharePercent": 20, "clustersInSubscription": 4, "loadBalancerBackendPoolUpdateParallelMachines": 7,
	"loadBalancerBackendPoolDriftRepairIntervalInSeconds": 60, "useResourceLease": true, "loadBalancerWriteStrategy": "Serial",
	"enableNodeAdminState": false, "nodeAdminStateTaints": ["example.com/leaves", "ToBeDeleted=1"], "nodeAdminStateConditions": ["DrainInProgress"],
	"nodeAdminStateReporters": ["example.com/agent"], "nodeAdminStateMinAvailablePercent": 75
}`

func wholeConfig() Config {
	return Config{
		Cloud: Cloud{
			Name: "AzureChinaCloud", SubscriptionID: "s", ResourceGroup: "rg", ResourceManagerEndpoint: "https://arm.example",
			Location: "chinaeast2", ExtendedLocationName: "beijing1", ExtendedLocationType: "edgezone", Tags: "team=shop,cost=1", TagsMap: map[string]string{"Cost": "2,3"},
		},
		Auth: Auth{
			TenantID: "t", AADClientID: "c", AADClientSecret: canary, AADClientCertPath: "/cert", AADClientCertPassword: canary,
			AADFederatedTokenFile: "/token", UserAssignedIdentityID: "u", UseManagedIdentity: new(true), UseWorkloadIdentity: new(false),
		},
		Network: Network{VnetName: "v", VnetResourceGroup: "vrg", SubnetName: "nodes", SecurityGroupName: "nsg", SecurityGroupResourceGroup: "nrg", RequireEffectiveRestrictions: true, NetworkResourceSubscriptionID: "ns", NetworkResourceTenantID: "T"},
		LoadBalancers: LoadBalancers{
			LoadBalancerResourceGroup: "lrg", LoadBalancerSKU: "STANDARD", LoadBalancerMigration: "Manual", BackendPoolType: NodeIP, LocalServicePools: PoolsOwn,
			Configurations: []LoadBalancerConfiguration{{Name: "kubernetes", AllowServicePlacement: new(true)}, {
				Name: "lb-2", PrimaryVMSet: "vmss-2", AllowServicePlacement: new(false),
				ServiceLabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/tier": "front"}},
				ServiceNamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "In", Values: []string{"a", "b"}}}},
				NodeSelector:             &metav1.LabelSelector{},
			}},
			MaximumRules: new(300), AvailabilityZones: []string{}, DisableOutboundSNAT: true, RetainAddresses: true,
			ProbeMode: ProbeShared, SharedProbePort: new(10257), SharedProbePath: "/livez", ExcludeMaster: new(false),
		},
		PrivateLinks: PrivateLinks{PrivateLinkServiceResourceGroup: "plsrg", MaximumPrivateLinkServices: new(20), DisableSubnetPolicies: true, PodSubnetNames: []string{"pods"}},
		PoolUpdate:   PoolUpdate{IntervalSeconds: new(5), MaxRetries: new(0), WriteSharePercent: new(20), ClustersInSubscription: new(4), ParallelMachines: new(7), DriftSeconds: new(60), UseResourceLease: new(true), WriteStrategy: SerialStrategy},
		AdminState: AdminState{
			EnableNodeAdminState: new(false), NodeAdminStateTaints: []string{"example.com/leaves", "ToBeDeleted=1"}, NodeAdminStateConditions: []string{"DrainInProgress"},
			NodeAdminStateReporters: []string{"example.com/agent"}, NodeAdminStateMinAvailablePercent: new(75),
		},
	}
}

// The file may be JSON or YAML; keys are case-insensitive.
func TestEveryKeyInEveryForm(t *testing.T) {
	asYAML, err := yaml.JSONToYAML([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal([]byte(whole), &keys); err != nil {
		t.Fatal(err)
	}
	shouted := map[string]any{}
	for key, value := range keys {
		shouted[strings.ToUpper(key)] = value
	}
	upper, err := json.Marshal(shouted)
	if err != nil {
		t.Fatal(err)
	}
	for form, content := range map[string]string{
		"JSON": whole, "YAML": string(asYAML), "upper case": string(upper), "with a byte order mark": "\ufeff" + whole,
		"JSON with a comment, as YAML takes it": strings.Replace(whole, "\n\t\"cloud\"", "\n \"cloud\"", 1) + "\n# end\n",
	} {
		t.Run(form, func(t *testing.T) {
			c, ignored := mustLoad(t, content)
			if diff := cmp.Diff(wholeConfig(), c, cmp.Comparer(func(a, b Secret) bool { return a.Reveal() == b.Reveal() })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if w := ignored.WarningText(); w != "" {
				t.Errorf("warns of keys it has read: %s", w)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	c, _ := mustLoad(t, "subscriptionId: s\nresourceGroup: rg\n")
	if c.UpdateInterval() != 30*time.Second || *c.IntervalSeconds != 30 || c.RetryCount() != 3 || *c.MaxRetries != 3 || !c.ShouldExcludeControlPlane() || !*c.ExcludeMaster {
		t.Errorf("got interval %v, %d retries, control plane excluded: %v", c.UpdateInterval(), c.RetryCount(), c.ShouldExcludeControlPlane())
	}
	if c.BackendResourceGroup() != "rg" || c.VirtualNetworkID() != "" || c.WorkloadIdentity() || c.ManagedIdentity() {
		t.Errorf("got %+v", c)
	}
	if c.IsResourceLeaseEnabled() || *c.UseResourceLease {
		t.Error("the resource lease is taken though nobody asked for it")
	}
	var zero Config
	if zero.IsResourceLeaseEnabled() || zero.UpdateInterval() != 30*time.Second || zero.RetryCount() != 3 || !zero.ShouldExcludeControlPlane() {
		t.Error("a Config that was not loaded has other defaults")
	}
}

func TestWriteStrategy(t *testing.T) {
	for given, want := range map[string]WriteStrategy{"": AutoStrategy, "AUTO": AutoStrategy, "serial": SerialStrategy, "Serial": SerialStrategy} {
		c, _ := mustLoad(t, "subscriptionId: s\nresourceGroup: rg\nloadBalancerWriteStrategy: "+given)
		if c.UpdateStrategy() != want {
			t.Errorf("%q is %q, want %q", given, c.UpdateStrategy(), want)
		}
	}
}

func TestDriftPeriod(t *testing.T) {
	for given, want := range map[string]time.Duration{"": 10 * time.Minute, "null": 10 * time.Minute, "0": 0, "-5": 0, "60": time.Minute, "86400": 24 * time.Hour} {
		text := "subscriptionId: s\nresourceGroup: rg\n"
		if given != "" {
			text += "loadBalancerBackendPoolDriftRepairIntervalInSeconds: " + given
		}
		c, _ := mustLoad(t, text)
		if c.DriftPeriod() != want || *c.DriftSeconds != int(want.Seconds()) {
			t.Errorf("%q: %s, want %s", given, c.DriftPeriod(), want)
		}
	}
}

func TestRetriesAndInterval(t *testing.T) {
	for given, want := range map[string]struct {
		retries  int
		interval time.Duration
	}{
		"": {3, 30 * time.Second},
		"loadBalancerBackendPoolUpdateMaxRetries: 0":           {0, 30 * time.Second},
		"loadBalancerBackendPoolUpdateMaxRetries: -4":          {0, 30 * time.Second},
		"loadBalancerBackendPoolUpdateMaxRetries: 7":           {7, 30 * time.Second},
		"loadBalancerBackendPoolUpdateMaxRetries: null":        {3, 30 * time.Second},
		"loadBalancerBackendPoolUpdateIntervalInSeconds: 0":    {3, 30 * time.Second},
		"loadBalancerBackendPoolUpdateIntervalInSeconds: 1":    {3, time.Second},
		"loadBalancerBackendPoolUpdateIntervalInSeconds: -5":   {3, 30 * time.Second},
		"loadBalancerBackendPoolUpdateIntervalInSeconds: null": {3, 30 * time.Second},
	} {
		c, _ := mustLoad(t, "subscriptionId: s\nresourceGroup: rg\n"+given)
		if c.RetryCount() != want.retries || *c.MaxRetries != want.retries || c.UpdateInterval() != want.interval {
			t.Errorf("%q: %d retries, %v; want %+v", given, c.RetryCount(), c.UpdateInterval(), want)
		}
	}
}

// An explicit 0 survives a round trip: it is not "unset".
func TestAnExplicitZeroSurvives(t *testing.T) {
	for given, want := range map[string]string{"": "3", `,"loadBalancerBackendPoolUpdateMaxRetries":0`: "0"} {
		c, _ := mustLoad(t, `{"subscriptionId":"s","resourceGroup":"rg"`+given+`}`)
		text, err := json.Marshal(c)
		if err != nil || !strings.Contains(string(text), `"loadBalancerBackendPoolUpdateMaxRetries":`+want) {
			t.Errorf("%q became %s, %v", given, text, err)
		}
		second, _ := mustLoad(t, string(text))
		if second.RetryCount() != c.RetryCount() {
			t.Errorf("%q: %d retries, then %d", given, c.RetryCount(), second.RetryCount())
		}
	}
}

func TestFallbacks(t *testing.T) {
	base := `{"subscriptionId":"s","resourceGroup":"rg","vnetName":"v"`
	for given, want := range map[string]string{
		``:                         "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v",
		`,"vnetResourceGroup":"n"`: "/subscriptions/s/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v",
		`,"networkResourceSubscriptionID":"x","vnetResourceGroup":"n"`: "/subscriptions/x/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/v",
	} {
		if c, _ := mustLoad(t, base+given+"}"); c.VirtualNetworkID() != want {
			t.Errorf("%q: %s, want %s", given, c.VirtualNetworkID(), want)
		}
	}
	if c, _ := mustLoad(t, base+`,"loadBalancerResourceGroup":"lrg"}`); c.BackendResourceGroup() != "lrg" {
		t.Errorf("load balancers are looked for in %s", c.BackendResourceGroup())
	}
	if c, _ := mustLoad(t, base+`,"aadFederatedTokenFile":"/f"}`); !c.WorkloadIdentity() {
		t.Error("a token file alone configures workload identity")
	}
	if c, _ := mustLoad(t, base+`,"aadFederatedTokenFile":"/f","useFederatedWorkloadIdentityExtension":false}`); c.WorkloadIdentity() {
		t.Error("an explicit false wins over a token file")
	}
}

func TestMalformedFiles(t *testing.T) {
	base := "subscriptionId: s\nresourceGroup: rg\n"
	tests := []struct {
		name, content string
		wantText      []string
	}{
		{"empty", " \n", []string{"the file is empty"}},
		{"a list", "- a\n", []string{"mapping"}},
		{"a word", "hello", []string{"mapping"}},
		{"null", "null", []string{"mapping"}},
		{"broken JSON", "{\n \"subscriptionId\": \"s\",\n \"resourceGroup\": \"rg\"\n \"vnetName\": \"v\"\n}", []string{"line 4, column 2: a comma (,) is missing"}},
		{"a quote missing in JSON", "{\"subscriptionId\":\"s\",\"resourceGroup\":\"rg\",aadClientSecret\":\"" + canary + "\"}", []string{"line 1, column 44: key aadClientSecret without quotes"}},
		{"the same behind a comment", "# ours\n---\n {\"subscriptionId\":\"s\",\"resourceGroup\":\"rg\",aadClientSecret\":\"" + canary + "\"}", []string{"line 3, column 45: key aadClientSecret without quotes"}},
		{"YAML in braces", "{subscriptionId: s, resourceGroup: rg}", []string{"line 1, column 2: key subscriptionId without quotes", "a file that begins with { is JSON"}},
		{"a comment within JSON", "{\n# ours\n\"subscriptionId\":\"s\"}", []string{"line 2, column 1: a comment (#)"}},
		{"UTF-16", "\xff\xfe{\x00}\x00", []string{"not UTF-8"}},
		{"an alias of a secret", base + "aadClientSecret: *" + canary, []string{"not YAML"}},
		{"cut off", "{\n \"aadClientSecret\": \"" + canary, []string{"line 2"}},
		{"broken YAML", "subscriptionId: s\n\tresourceGroup: rg\n", []string{"line 2"}},
		{"no subscription", "resourceGroup: rg", []string{`key "subscriptionId" is missing`}},
		{"no resource group", "subscriptionId: s", []string{`key "resourceGroup" is missing`}},
		{"a number for a string", base + "vnetName: 5", []string{`key "vnetName": want a string, got a number`}},
		{"a number for a secret", base + "aadClientSecret: 5150519", []string{`key "aadClientSecret": want a string, got a number`}},
		{"a list for a secret", base + "aadClientSecret: [" + canary + "]", []string{`key "aadClientSecret": want a string, got a list`}},
		{"a string for a switch", base + "useManagedIdentityExtension: \"" + canary + "\"", []string{`key "useManagedIdentityExtension": want true or false, got a string`}},
		{"a string for a number", base + "loadBalancerBackendPoolUpdateMaxRetries: many", []string{`key "loadBalancerBackendPoolUpdateMaxRetries": want a whole number of at most 2147483647, got a string`}},
		{"a word for the lease", base + "useResourceLease: yes please", []string{`key "useResourceLease": want true or false, got a string`}},
		{"a word for a strategy", base + "loadBalancerWriteStrategy: fast", []string{`key "loadBalancerWriteStrategy" is "fast": want "auto" or "serial", or remove the key for "auto"`}},
		{"a switch for a strategy", base + "loadBalancerWriteStrategy: true", []string{`key "loadBalancerWriteStrategy": want auto or serial, got true or false`}},
		{"a strategy that is gone", base + "loadBalancerWriteStrategy: whole", []string{`key "loadBalancerWriteStrategy" is "whole": want "auto" or "serial", or remove the key for "auto"`}},
		{"half a retry", base + "loadBalancerBackendPoolUpdateMaxRetries: 1.5", []string{"want a whole number of at most 2147483647, got a number"}},
		{"more retries than anybody counts", base + "loadBalancerBackendPoolUpdateMaxRetries: 2147483648", []string{`"loadBalancerBackendPoolUpdateMaxRetries" is 2147483648: want at most 2147483647`}},
		{"more retries than a number holds", `{"subscriptionId":"s","resourceGroup":"rg","loadBalancerBackendPoolUpdateMaxRetries":99999999999999999999}`,
			[]string{`key "loadBalancerBackendPoolUpdateMaxRetries": want a whole number of at most 2147483647, got a number`}},
		{"a longer interval than a number holds", base + "loadBalancerBackendPoolUpdateIntervalInSeconds: 99999999999999999999",
			[]string{`key "loadBalancerBackendPoolUpdateIntervalInSeconds": want a whole number of at most 86400, got a number`}},
		{"a longer drift period than a number holds", `{"subscriptionId":"s","resourceGroup":"rg","LOADBALANCERBACKENDPOOLDRIFTREPAIRINTERVALINSECONDS":99999999999999999999}`,
			[]string{"want a whole number of at most 86400, got a number"}},
		{"two JSON values", `{"subscriptionId":"s","resourceGroup":"rg"}{"resourceGroup":"other"}`, []string{"line 1", "after the top-level value"}},
		{"words behind JSON", `{"subscriptionId":"s","resourceGroup":"rg"} trailing`, []string{"line 1", "after the top-level value"}},
		{"two YAML documents", "subscriptionId: s\nresourceGroup: rg\n---\nvnetName: x\n", []string{"line 3", "second YAML document"}},
		{"an endless drift period", base + "loadBalancerBackendPoolDriftRepairIntervalInSeconds: 86401", []string{"is 86401: want at most 86400"}},
		{"more than there is", base + "loadBalancerBackendPoolUpdateWriteSharePercent: 101", []string{`key "loadBalancerBackendPoolUpdateWriteSharePercent" is 101: want 0 to 100`}},
		{"no cluster", base + "clustersInSubscription: 0", []string{`key "clustersInSubscription" is 0: want 1 to 1000`}},
		{"fewer than none", base + "clustersInSubscription: -2", []string{`key "clustersInSubscription" is -2: want 1 to 1000`}},
		{"too many clusters", base + "clustersInSubscription: 1001", []string{`key "clustersInSubscription" is 1001: want 1 to 1000`}},
		{"less than nothing", base + "loadBalancerBackendPoolUpdateWriteSharePercent: -1", []string{`key "loadBalancerBackendPoolUpdateWriteSharePercent" is -1: want 0 to 100`}},
		{"more machines than Azure takes", base + "loadBalancerBackendPoolUpdateParallelMachines: 101", []string{`key "loadBalancerBackendPoolUpdateParallelMachines" is 101: want 1 to 100`}},
		{"no machine at all", base + "loadBalancerBackendPoolUpdateParallelMachines: 0", []string{`key "loadBalancerBackendPoolUpdateParallelMachines" is 0: want 1 to 100`}},
		{"half a machine", base + "loadBalancerBackendPoolUpdateParallelMachines: 1.5", []string{"want a whole number of at most 100, got a number"}},
		{"an endless interval", base + "loadBalancerBackendPoolUpdateIntervalInSeconds: 9999999999", []string{"want 1 to 86400"}},
		{"twice", base + "vnetName: a\nVnetName: b", []string{`"VnetName"`, `"vnetName"`, "given twice"}},
		{"twice the same in YAML", base + "vnetName: a\nvnetName: b", []string{`line 4: key "vnetName" is given twice`}},
		{"twice the same in JSON", "{\"subscriptionId\":\"s\",\"resourceGroup\":\"rg\",\n\"vnetName\":\"a\",\n\"vnetName\":\"a\"}", []string{`line 3, column 1: key "vnetName" is given twice`}},
		{"twice within JSON", "{\"subscriptionId\":\"s\",\"resourceGroup\":\"rg\",\n\"multipleStandardLoadBalancerConfigurations\":[{\"name\":\"a\"},{\"name\":\"a\",\n\"name\":\"b\"}]}",
			[]string{`line 3, column 1: key "name" is given twice`}},
		{"a secret twice in JSON", "{\"subscriptionId\":\"s\",\"resourceGroup\":\"rg\",\"" + canary + "\":1,\"" + canary + "\":2}", []string{"line 1", "given twice"}},
		{"a secret twice for a key", base + canary + ": a\n" + canary + ": b", []string{"line 4", "not YAML"}},
		{"a path for a subscription", "subscriptionId: a/../b\nresourceGroup: rg", []string{`key "subscriptionId"`}},
		{"a path for a group", base + "loadBalancerResourceGroup: a/b", []string{`key "loadBalancerResourceGroup"`, `"a/b"`}},
		{"a path for a network", base + "vnetName: ../x", []string{`key "vnetName"`}},
		{"a path for the network's group", base + "vnetResourceGroup: ../x", []string{`key "vnetResourceGroup"`}},
		{"a string for a list", base + "multipleStandardLoadBalancerConfigurations: a", []string{`key "multipleStandardLoadBalancerConfigurations": want a list, got a string`}},
		{"a string for an entry", base + "multipleStandardLoadBalancerConfigurations: [a]", []string{`key "multipleStandardLoadBalancerConfigurations[0]": want a mapping, got a string`}},
		{"a list for a selector", base + "multipleStandardLoadBalancerConfigurations: [{name: a, nodeSelector: []}]", []string{`[0].nodeSelector": want a mapping, got a list`}},
		{"a switch for a label", base + "multipleStandardLoadBalancerConfigurations: [{name: a}, {name: b, nodeSelector: {matchLabels: {spot: true}}}]",
			[]string{`[1].nodeSelector.matchLabels.spot": want a string, got true or false`}},
		{"a string for values", base + "multipleStandardLoadBalancerConfigurations: [{name: a, nodeSelector: {matchExpressions: [{key: k, operator: In, values: v}]}}]",
			[]string{`[0].nodeSelector.matchExpressions[0].values": want a list, got a string`}},
		{"twice in an entry", base + "multipleStandardLoadBalancerConfigurations: [{name: a, Name: b}]", []string{`[0].name" is given twice`, `[0].Name"`}},
		{"a number for a tag", base + "tagsMap: {cost: 5}", []string{`key "tagsMap.cost": want a string, got a number`}},
		{"a string for tags", base + "tagsMap: a=b", []string{`key "tagsMap": want a mapping, got a string`}},
		{"no room for a private link service", base + "maximumPrivateLinkServiceCount: 0", []string{`key "maximumPrivateLinkServiceCount" is 0`, "want 1 to 1000"}},
		{"a resource group that is none", base + "privateLinkServiceResourceGroup: a/b", []string{`key "privateLinkServiceResourceGroup" is "a/b"`, "want the name of a resource group"}},
		{"an edge zone without a type", base + "extendedLocationName: losangeles", []string{`key "extendedLocationType" is ""`, `want "EdgeZone", with the name of an edge zone`}},
		{"another extended location", base + "extendedLocationName: losangeles\nextendedLocationType: CustomLocation", []string{`key "extendedLocationType" is "CustomLocation"`, `want "EdgeZone"`}},
		{"a type without an edge zone", base + "extendedLocationType: EdgeZone", []string{`key "extendedLocationName" is ""`, "want the name of an edge zone"}},
		{"an edge zone that is a path", base + "extendedLocationName: a/b\nextendedLocationType: EdgeZone", []string{`key "extendedLocationName" is "a/b"`}},
		{"an edge zone with zones", base + "extendedLocationName: losangeles\nextendedLocationType: EdgeZone\navailabilityZones: ['1']", []string{"an edge zone has no availability zones"}},
		{"a subnet that is none", base + "podSubnetNames: [a/b]", []string{`key "podSubnetNames" has "a/b"`, "want names of subnets"}},
		{"more rules than a number holds", base + "maximumLoadBalancerRuleCount: 99999999999999999999", []string{"want a whole number of at most 1500, got a number"}},
		{"a path for a security group", base + "securityGroupName: a/b", []string{`key "securityGroupName" is "a/b"`}},
		{"a path for a security group's resource group", base + "securityGroupResourceGroup: a/b", []string{`key "securityGroupResourceGroup"`}},
		{"a path for a subnet", base + "subnetName: a/b", []string{`key "subnetName" is "a/b"`}},
		{"too large", strings.Repeat(" ", maxSize) + base, []string{"larger than"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.content)
			c, _, err := Load(path)
			if err == nil {
				t.Fatalf("loaded %v", c)
			}
			for _, want := range append(tt.wantText, path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.ContainsAny(err.Error(), "\n\r") || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "5150519") {
				t.Errorf("not one line without secrets: %q", err)
			}
			if diff := cmp.Diff(Config{}, c); diff != "" {
				t.Errorf("a failed load returns something:\n%s", diff)
			}
		})
	}
	if _, _, err := Load("/no/such/azure.json"); err == nil || !strings.Contains(err.Error(), "/no/such/azure.json") {
		t.Errorf("got %v, want the path", err)
	}
}

// An endless pipe times out, because signals are not handled while reading.
func TestPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "azure.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), "the file is empty") {
		t.Errorf("nobody writes: %v", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	go func() {
		defer writer.Close()
		_, _ = writer.WriteString(whole) // Load reports a closed reader
	}()
	if c, _, err := Load(fmt.Sprintf("/dev/fd/%d", reader.Fd())); err != nil || c.SubscriptionID != "s" {
		t.Errorf("somebody writes: %v, %v", c, err)
	}
}

func TestSecretsArePrintedNowhere(t *testing.T) {
	c, _ := mustLoad(t, whole)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "auth", c.Auth, "secret", c.AADClientSecret)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", c, "auth", c.Auth, "secret", c.AADClientSecret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		fmt.Fprintf(&log, verb+"\n", c)
		fmt.Fprintf(&log, verb+"\n", c.Auth)
		fmt.Fprintf(&log, verb+"\n", &c.Auth)
		fmt.Fprintf(&log, verb+"\n", c.AADClientSecret)
	}
	asJSON, _ := json.Marshal(c)
	asYAML, _ := yaml.Marshal(c)
	text := log.String() + string(asJSON) + string(asYAML)
	if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
		t.Errorf("a secret is printed:\n%s", text)
	}
	if c.AADClientSecret.Reveal() != canary {
		t.Error("the secret itself is lost")
	}
	if !strings.Contains(log.String(), redacted) || !strings.Contains(c.String(), "subscription s") {
		t.Errorf("the log shows nothing at all:\n%s", log.String())
	}
}

func TestEnvironmentFile(t *testing.T) {
	if e, err := LoadEnvironment(""); err != nil || e != (Environment{}) {
		t.Errorf("no file: %+v, %v", e, err)
	}
	e, err := LoadEnvironment(write(t, `{"name":"AzureStackCloud","resourceManagerEndpoint":"https://arm","tokenAudience":"https://aud","activeDirectoryEndpoint":"https://login/"}`))
	if err != nil || e != (Environment{"https://arm", "https://aud", "https://login/"}) {
		t.Errorf("got %+v, %v", e, err)
	}
	var c Config
	if c.EndpointOverride(e) != "https://arm" {
		t.Errorf("got %s from the file alone", c.EndpointOverride(e))
	}
	c.ResourceManagerEndpoint = "https://own"
	if c.EndpointOverride(e) != "https://own" {
		t.Errorf("got %s, want azure.json's own", c.EndpointOverride(e))
	}
	for _, path := range []string{"/no/such/file", write(t, "{"), write(t, `{"tokenAudience":5}`), write(t, `{"a":"`+canary+`",tokenAudience":"`+canary+`"}`)} {
		if _, err := LoadEnvironment(path); err == nil || !strings.Contains(err.Error(), EnvironmentVariable) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), canary) {
			t.Errorf("got %v, want the variable and the path", err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{whole, "subscriptionId: s\nresourceGroup: rg\n", "", "{", "- a", "a: &a [*a]", "? {a: b}\n: c", "subscriptionId: !!binary aGk=\nresourceGroup: 2001-01-01", "\xff\xfe", "{\"a\":1,\"A\":2}", "<<: {a: b}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		c, ignored, err := parseConfig(content)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if c.SubscriptionID == "" || c.ResourceGroup == "" || c.RetryCount() < 0 || c.UpdateInterval() <= 0 {
			t.Errorf("loaded what cannot be: %v", c)
		}
		if c.MaxRules() < 1 || c.MaxRules() > maxRules || c.ProbePort() < 1 || c.ProbePath()[0] != '/' || len(c.ResourceTags()) > 50 {
			t.Errorf("loaded what cannot be: %+v", c.LoadBalancers)
		}
		second := c
		if err := second.Normalize(); err != nil || !cmp.Equal(c, second) {
			t.Errorf("normalized twice: %v\n%s", err, cmp.Diff(c, second))
		}
		if strings.ContainsAny(ignored.WarningText(), "\n\r\x1b") {
			t.Errorf("a warning of several lines: %q", ignored.WarningText())
		}
	})
}

func TestNetworkTenant(t *testing.T) {
	for _, tt := range []struct{ given, tenant, subscription, problem string }{
		{``, "", "s", ""},
		{`,"networkResourceSubscriptionID":"n"`, "", "n", ""},
		{`,"tenantId":"t","networkResourceSubscriptionID":"n","networkResourceTenantID":"u"`, "u", "n", ""},
		{`,"tenantId":"t","networkResourceSubscriptionID":"n","networkResourceTenantID":"T"`, "", "n", ""},
		{`,"tenantId":"t","networkResourceTenantID":"u"`, "", "", `needs "tenantId" and "networkResourceSubscriptionID"`},
		{`,"networkResourceSubscriptionID":"n","networkResourceTenantID":"u"`, "", "", `needs "tenantId" and "networkResourceSubscriptionID"`},
		{`,"tenantId":"t","networkResourceSubscriptionID":"S","networkResourceTenantID":"u"`, "", "", "the subscription is the same"},
		{`,"tenantId":"t","networkResourceSubscriptionID":"n","networkResourceTenantID":"u","useManagedIdentityExtension":true`, "", "", "a managed identity gets tokens of its own tenant only"},
		{`,"tenantId":"t","networkResourceSubscriptionID":"n","networkResourceTenantID":"u","useManagedIdentityExtension":true,"aadFederatedTokenFile":"/f"`, "u", "n", ""},
	} {
		c, _, err := parseConfig([]byte(`{"subscriptionId":"s","resourceGroup":"rg"` + tt.given + `}`))
		switch {
		case tt.problem != "":
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%q: %v, want %s", tt.given, err, tt.problem)
			}
		case err != nil || c.NetworkTenantID() != tt.tenant || c.NetworkSubscriptionID() != tt.subscription:
			t.Errorf("%q: tenant %q, subscription %q, %v", tt.given, c.NetworkTenantID(), c.NetworkSubscriptionID(), err)
		case c.SecurityGroup().SubscriptionID != tt.subscription || c.PrivateLinkServices().SubscriptionID != tt.subscription:
			t.Errorf("%q: security group %v, Private Link Services %v", tt.given, c.SecurityGroup(), c.PrivateLinkServices())
		}
	}
}
