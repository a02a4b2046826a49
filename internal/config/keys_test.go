// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A key without effect is named, once and in one line; one that says what Weir does
// anyway is not worth a warning.
func TestKeysWithoutEffect(t *testing.T) {
	tests := []struct{ given, want string }{
		{``, ""},
		{`,"subnetName":"s","TAGS":"a=b","multipleStandardLoadBalancerConfigurations":[{"name":"a"}]`,
			"keys of azure.json without effect: not supported yet: tags, multipleStandardLoadBalancerConfigurations, subnetName"},
		{`,"vnetNam":"v","\u001b[31m":1`, "keys of azure.json without effect: unknown: \"\\x1b[31m\", \"vnetNam\""},
		{`,"location":"eastus","disableOutboundSNAT":true,"zzz":1`, `keys of azure.json without effect: not supported yet: disableOutboundSNAT; unknown: "zzz"`},
		{`,"loadBalancerSku":"Standard","loadBalancerBackendPoolConfigurationType":"nodeIP","tags":"","securityGroupName":null`, ""},
		{`,"loadBalancerSku":"basic","loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration"`,
			"keys of azure.json without effect: not supported yet: loadBalancerBackendPoolConfigurationType, loadBalancerSku"},
	}
	for _, tt := range tests {
		_, ignored := mustLoad(t, `{"subscriptionId":"s","resourceGroup":"rg"`+tt.given+`}`)
		if got := ignored.Warning(); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.given, got, tt.want)
		}
	}
}

// What cluster builders write for other parts of the cloud provider is known, and no
// warning; what only looks like it is one.
func TestKeysThatAreOthersBusiness(t *testing.T) {
	tests := []struct {
		given string
		warns bool
	}{
		{`"location":"eastus","vmType":"vmss","primaryScaleSetName":"p","primaryAvailabilitySetName":"a","enableVmssFlexNodes":true`, false},
		{`"LOCATION":"eastus"`, false},
		{`"routeTableName":"rt","routeTableResourceGroup":"rg","useInstanceMetadata":true`, false},
		{`"providerVaultName":"v","providerKeyName":"k","providerKeyVersion":"1"`, false},
		{`"cloudProviderBackoff":true,"cloudProviderBackoffMode":"v2","cloudProviderBackoffRetries":6,"cloudProviderBackoffExponent":1.5,
			"cloudProviderBackoffDuration":5,"cloudProviderBackoffJitter":1`, false},
		{`"cloudProviderRatelimit":true,"cloudProviderRateLimitQPS":3,"cloudProviderRateLimitBucketWrite":10`, false},
		{`"loadBalancerRateLimit":{"cloudProviderRateLimit":true},"vmssCacheTTLInSeconds":60`, false},
		{`"locations":"eastus"`, true},
		{`"cloudProviderBackof":true`, true},
		{`"aCloudProviderBackoff":true`, true},
		{`"rateLimitOfTheLoadBalancer":1`, true},
		{`"RateLimit":1`, true},
		{`"securityGroupName":"sg"`, true},
	}
	for _, tt := range tests {
		_, ignored := mustLoad(t, `{"subscriptionId":"s","resourceGroup":"rg",`+tt.given+`}`)
		if got := ignored.Warning(); (got != "") != tt.warns {
			t.Errorf("%s: %q", tt.given, got)
		}
	}
}

// The reference page lists every key that is read, and every one that is known.
func TestTheReferenceListsEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/azure-json.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Concat(notYet, othersBusiness)
	var read map[string]any
	if err := json.Unmarshal([]byte(whole), &read); err != nil {
		t.Fatal(err)
	}
	for key := range read {
		keys = append(keys, key)
	}
	for _, key := range keys {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/reference/azure-json.md has no `%s`", key)
		}
	}
}

// A number without a bound would be told to be at most 0.
func TestEveryNumberHasABound(t *testing.T) {
	var c Config
	fields := map[string]reflect.Value{}
	collect(reflect.ValueOf(&c).Elem(), fields)
	numbers := 0
	for key, field := range fields {
		if strings.HasPrefix(kind(field.Type(), 1), "a whole number") {
			numbers++
			if atMost[key] <= 0 {
				t.Errorf("%s has no bound", key)
			}
		}
	}
	if numbers != len(atMost) {
		t.Errorf("%d numbers, %d bounds", numbers, len(atMost))
	}
}
