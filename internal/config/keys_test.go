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

// Ignored keys are named in one line; keys that request the existing behavior are not.
func TestKeysWithoutEffect(t *testing.T) {
	tests := []struct{ given, want string }{
		{``, ""},
		{`,"securityGroupName":"s","IDENTITYSYSTEM":"t","securityGroupResourceGroup":"g"`,
			"keys of azure.json without effect: not supported yet: identitySystem"},
		{`,"vnetNam":"v","\u001b[31m":1`, `keys of azure.json without effect: unknown: "vnetNam"; 1 whose names are not shown, because they do not look like keys: check the quotes and colons around them`},
		{`,"kQ8~3vT.secret":1,"multipleStandardLoadBalancerConfigurations":[{"name":"a","kQ8~3vT":1}]`,
			`keys of azure.json without effect: 2 whose names are not shown, because they do not look like keys: check the quotes and colons around them`},
		{`,"identitySystem":"s","zzz":1`, `keys of azure.json without effect: not supported yet: identitySystem; unknown: "zzz"`},
		{`,"loadBalancerSku":"Standard","loadBalancerBackendPoolConfigurationType":"nodeIP","tags":"","identitySystem":null`, ""},
		{`,"multipleStandardLoadBalancerConfigurations":[{"name":"a","nodeSelector":{"matchLabels":{"zone":"1"}}},
			{"NAME":"b","autoPlaceServices":true,"nodeSelector":{"matchLabel":{},"matchExpressions":[{"Key":"k","Operator":"Exists","value":"v"}]}}],"zzz":1`,
			`keys of azure.json without effect: unknown: "multipleStandardLoadBalancerConfigurations[1].autoPlaceServices", ` +
				`"multipleStandardLoadBalancerConfigurations[1].nodeSelector.matchExpressions[0].value", ` +
				`"multipleStandardLoadBalancerConfigurations[1].nodeSelector.matchLabel", "zzz"`},
	}
	for _, tt := range tests {
		_, ignored := mustLoad(t, `{"subscriptionId":"s","resourceGroup":"rg"`+tt.given+`}`)
		if got := ignored.WarningText(); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.given, got, tt.want)
		}
	}
}

// Keys that cloud-provider-azure understands differently are named if they are set, and the reference page has a row for
// each.
func TestKeysWithAnotherMeaning(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/azure-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(page), "## Keys with another meaning in cloud-provider-azure")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for _, d := range differences {
		if !strings.Contains(rows, "`"+d.key+"`") {
			t.Errorf("the page has no row for `%s`", d.key)
		}
	}
	for given, want := range map[string]string{
		``: "",
		`,"tags":"","tagsMap":null,"vnetName":"v"`: "",
		`,"LOADBALANCERSKU":"standard","tags":"a=b"`: "keys of azure.json that cloud-provider-azure understands differently: loadBalancerSku: " + differences[0].text +
			"; tags: " + differences[1].text,
	} {
		_, ignored := mustLoad(t, `{"subscriptionId":"s","resourceGroup":"rg"`+given+`}`)
		if got := ignored.DifferenceText(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", given, got, want)
		}
	}
}

// Keys for other parts of cloud-provider-azure cause no warning; similar names do.
func TestKeysOfOtherComponents(t *testing.T) {
	tests := []struct {
		given string
		warns bool
	}{
		{`"location":"eastus","vmType":"vmss","primaryScaleSetName":"p","primaryAvailabilitySetName":"a","enableVmssFlexNodes":true`, false},
		{`"VMTYPE":"vmss"`, false},
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
		{`"identitySystem":"t"`, true},
	}
	for _, tt := range tests {
		_, ignored := mustLoad(t, `{"subscriptionId":"s","resourceGroup":"rg",`+tt.given+`}`)
		if got := ignored.WarningText(); (got != "") != tt.warns {
			t.Errorf("%s: %q", tt.given, got)
		}
	}
}

// readKeys returns the keys that are read, as spelled in the file.
func readKeys(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if field := t.Field(i); field.Anonymous {
			keys = append(keys, readKeys(field.Type)...)
		} else {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			keys = append(keys, name)
		}
	}
	return keys
}

// The reference page lists every known key.
func TestTheReferenceListsEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/azure-json.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Concat(unsupportedKeys, otherKeys, readKeys(reflect.TypeFor[Config]()), readKeys(reflect.TypeFor[LoadBalancerConfiguration]())) {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/reference/azure-json.md has no `%s`", key)
		}
	}
}

// The test file has every key except loadBalancerName, which excludes the list of load balancers.
func TestWholeIsWhole(t *testing.T) {
	var given map[string]any
	if err := json.Unmarshal([]byte(whole), &given); err != nil {
		t.Fatal(err)
	}
	for _, key := range readKeys(reflect.TypeFor[Config]()) {
		if _, ok := given[key]; ok == (key == "loadBalancerName") {
			t.Errorf("%s: given %v", key, ok)
		}
	}
}

// Without an entry in maxValues the error would say "at most 0".
func TestEveryNumberHasABound(t *testing.T) {
	var c Config
	fields := map[string]reflect.Value{}
	collectFields(reflect.ValueOf(&c).Elem(), fields)
	numbers := 0
	for key, field := range fields {
		if strings.HasPrefix(describeType(field.Type(), 1), "a whole number") {
			numbers++
			if maxValues[key] <= 0 {
				t.Errorf("%s has no bound", key)
			}
		}
	}
	if numbers != len(maxValues) {
		t.Errorf("%d numbers, %d bounds", numbers, len(maxValues))
	}
}
