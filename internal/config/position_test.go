// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

// JSON errors name the problem, line, column and fix. Each file is the base with the given last line.
func TestErrorPositionsInJSON(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"Python's true", `"useManagedIdentityExtension": True}`, `line 3, column 32: True is not JSON: write true`},
		{"Python's false", `"useManagedIdentityExtension": False}`, `line 3, column 32: False is not JSON: write false`},
		{"a shouted true", `"useManagedIdentityExtension":TRUE}`, `line 3, column 31: TRUE is not JSON: write true`},
		{"yes", `"useManagedIdentityExtension": yes}`, `line 3, column 32: yes is not JSON: write true`},
		{"None", `"vnetName": None}`, `line 3, column 13: None is not JSON: write null`},
		{"NaN", `"maximumLoadBalancerRuleCount": NaN}`, `line 3, column 33: NaN is not JSON: write a number`},
		{"a word", `"vnetName": ` + canary + `}`, `line 3, column 13: a value without quotes: put it between double quotes`},
		{"a word that begins as true", `"vnetName": true-` + canary + `}`, `line 3, column 13: a value without quotes`},
		{"a cloud", `"cloud": AzurePublicCloud}`, `line 3, column 10: a value without quotes`},
		{"a key without quotes", `vnetName: "v"}`, `line 3, column 1: key vnetName without quotes: put it between double quotes`},
		{"a secret for a key", canary + `: "v"}`, `line 3, column 1: a key without quotes: put it between double quotes`},
		{"a key that lost its first quote", `vnetName": "v"}`, `line 3, column 1: key vnetName without quotes`},
		{"a trailing comma", `"vnetName": "v",}`, `line 3, column 16: a comma (,) before }: remove it`},
		{"a trailing comma before another line", `"vnetName": "v",` + "\n}", `line 3, column 16: a comma (,) before }: remove it`},
		{"a trailing comma in a list", `"podSubnetNames": ["a",]}`, `line 3, column 23: a comma (,) before ]: remove it`},
		{"two commas", `"vnetName": "v",, "subnetName": "s"}`, `line 3, column 17: one comma (,) too many: remove it`},
		{"two commas in a list", `"podSubnetNames": ["a",,"b"]}`, `line 3, column 24: one comma (,) too many: remove it`},
		{"a comma at the beginning of a list", `"podSubnetNames": [,"b"]}`, `line 3, column 20: one comma (,) too many: remove it`},
		{"no comma", `"vnetName": "v" "subnetName": "s"}`, `line 3, column 17: a comma (,) is missing before this`},
		{"no comma in a list", `"podSubnetNames": ["a" "b"]}`, `line 3, column 24: a comma (,) is missing before this`},
		{"a semicolon", `"vnetName": "v"; "subnetName": "s"}`, `line 3, column 16: ; is not JSON: write a comma (,)`},
		{"no colon", `"vnetName" "v"}`, `line 3, column 12: a colon (:) is missing before this`},
		{"an equals sign", `"vnetName" = "v"}`, `line 3, column 12: = is not JSON: write a colon (:)`},
		{"no value", `"vnetName": }`, `line 3, column 13: the value of key vnetName is missing: write it before }`},
		{"no value of a secret", `"` + canary + `": , "a": 1}`, `line 3, column 23: the value is missing: write it before ,`},
		{"single quotes", `'vnetName': 'v'}`, `line 3, column 1: ' is not JSON: write a double quote (")`},
		{"a value in single quotes", `"vnetName": 'v'}`, `line 3, column 13: ' is not JSON: write a double quote (")`},
		{"typographic quotes", `"vnetName": “v”}`, `line 3, column 13: “ is not JSON: write a double quote (")`},
		{"a no-break space", "\"vnetName\":\u00a0\"v\"}", `line 3, column 12: a space that is not JSON: write an ordinary space`},
		{"a comment of two slashes", `"vnetName": "v" // ours`, `line 3, column 17: a comment (//): JSON has none within the object: remove it`},
		{"a comment between slashes", `/* ours */ "vnetName": "v"}`, `line 3, column 1: a comment (/*): JSON has none within the object: remove it`},
		{"a comment of YAML", `# ours`, `line 3, column 1: a comment (#): JSON has none within the object: remove it`},
		{"a comment behind a value", `"vnetName": # ours`, `line 3, column 13: a comment (#)`},
		{"a quote missing at the end", `"vnetName": "v` + "\n}", `line 3, column 13: the closing quote (") of this text is missing`},
		{"a tab in a text", "\"vnetName\": \"a\tb\"}", `line 3, column 15: a control character in a text: write \t for a tab, \n for a new line`},
		{"a path of Windows", `"aadClientCertPath": "C:\certs\client.pfx"}`, `line 3, column 25: a single backslash (\) in a text: write \\`},
		{"half an escape", `"vnetName": "\u12"}`, `line 3, column 14: a single backslash (\) in a text: write \\`},
		{"a leading zero", `"maximumLoadBalancerRuleCount": 0300}`, `line 3, column 33: a number that is not JSON: write digits without a leading zero, or put it between double quotes if it is a text`},
		{"a hexadecimal number", `"maximumLoadBalancerRuleCount": 0x10}`, `line 3, column 33: a number that is not JSON`},
		{"a plus", `"maximumLoadBalancerRuleCount": +1}`, `line 3, column 33: a number that is not JSON`},
		{"a point", `"maximumLoadBalancerRuleCount": .5}`, `line 3, column 33: a number that is not JSON`},
		{"the wrong bracket", `"podSubnetNames": ["a"}`, `line 3, column 23: } where ] belongs: a list ends with ]`},
		{"the wrong brace", `"vnetName": "v"]`, `line 3, column 16: ] where } belongs: an object ends with }`},
		{"cut off", `"podSubnetNames": ["a"`, `line 3, column 23: the file ends here, and ] is missing`},
		{"cut off after a comma", `"vnetName": "v",` + "\n", `line 4, column 1: the file ends here, and } is missing`},
		{"another object", `"vnetName": "v"} {}`, `line 3, column 18: content after the top-level value: the file must be one object`},
		{"twice", `"vnetName": "v", "vnetName": "v"}`, `line 3, column 18: key "vnetName" is given twice: remove one`},
		{"twice in other capitals", `"vnetName": "v", "VnetName": "v"}`, `line 3, column 30: key "vnetName" is given twice, as "VnetName" as well: remove one`},
		{"umlauts before it", `"vnetName": "äöü", "useResourceLease": True}`, `line 3, column 40: True is not JSON: write true`},

		{"a text for a switch", `"useManagedIdentityExtension": "true"}`, `line 3, column 32: key "useManagedIdentityExtension": want true or false, got a string: write true or false without quotes`},
		{"a number for a text", `"vnetName": 5}`, `line 3, column 13: key "vnetName": want a string, got a number: put it between double quotes`},
		{"a text for a number", `"maximumLoadBalancerRuleCount": "300"}`, `line 3, column 33: key "maximumLoadBalancerRuleCount": want a whole number of at most 1500, got a string: write the number without quotes`},
		{"an entry of a list", `"multipleStandardLoadBalancerConfigurations": [{"name": "a"},` + "\n" + `{"name": 7}]}`, `line 4, column 10: key "multipleStandardLoadBalancerConfigurations[1].name": want a string`},
		{"a text for a list", `"podSubnetNames": "a"}`, `line 3, column 19: key "podSubnetNames": want a list, got a string`},
		{"a value that cannot be", `"vnetName": "../x"}`, `line 3, column 13: key "vnetName" is "../x": want`},
	} {
		_, _, err := parseConfig([]byte("{\n\"subscriptionId\": \"s\", \"resourceGroup\": \"rg\",\n" + tt.line))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

func TestErrorPositionsInYAML(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"a tab", "tagsMap:\n\tcost: a", `line 4, column 1: a tab that indents: write spaces`},
		{"a text for a switch", `useManagedIdentityExtension: "true"`, `line 3, column 30: key "useManagedIdentityExtension": want true or false, got a string: write true or false without quotes`},
		{"a number for a text", `vnetName: 5`, `line 3, column 11: key "vnetName": want a string, got a number: put it between double quotes`},
		{"an entry of a list", "multipleStandardLoadBalancerConfigurations:\n- name: a\n- name: 7", `line 5, column 9: key "multipleStandardLoadBalancerConfigurations[1].name": want a string`},
		{"twice", "vnetName: v\nvnetName: v", `line 4: key "vnetName" is given twice`},
		{"twice in other capitals", "vnetName: v\nVnetName: v", `line 4, column 11: key "vnetName" is given twice, as "VnetName" as well`},
		{"a value that cannot be", "vnetName: ../x", `line 3, column 11: key "vnetName" is "../x": want`},
	} {
		_, _, err := parseConfig([]byte("subscriptionId: s\nresourceGroup: rg\n" + tt.line))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}
	// YAML has other spellings of true.
	for _, word := range []string{"True", "TRUE", "yes", "on"} {
		if c, _, err := parseConfig([]byte("subscriptionId: s\nresourceGroup: rg\nuseManagedIdentityExtension: " + word)); err != nil || !c.ManagedIdentity() {
			t.Errorf("%s: %v, %v", word, c, err)
		}
	}
}
