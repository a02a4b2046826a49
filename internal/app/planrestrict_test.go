// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// azureWith writes a modified azure.json.
func azureWith(t *testing.T, old, current string) string {
	t.Helper()
	text := readFile(t, planned+"azure.json")
	if !strings.Contains(text, old) {
		t.Fatalf("azure.json has no %s", old)
	}
	path := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, old, current)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A plan reports source restrictions without effect. If azure.json requires effective ones, such Services are
// rejected.
func TestPlansOfRestrictionsWithoutEffect(t *testing.T) {
	restricted := fmt.Sprintf(someService, "web", `, annotations: {service.beta.kubernetes.io/azure-allowed-service-tags: AzureCloud}`)
	const says = "restrictions without effect: service.beta.kubernetes.io/azure-allowed-service-tags: azure.json names no securityGroupName, and no security rule is made"
	tests := []struct {
		name, objects, now string
		noEffect, refused  bool
	}{
		{"served, and told", restricted, `"tags": ""`, true, false},
		{"refused", restricted, `"requireEffectiveRestrictions": true`, false, true},
		{"nothing is restricted", fmt.Sprintf(someService, "web", ""), `"requireEffectiveRestrictions": true`, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			azure := azureWith(t, `"securityGroupName": "nsg"`, tt.now)
			p, err := emptyCloud(t).plan(t, azure, tt.objects)
			if err != nil || len(p.Services) != 1 {
				t.Fatal(p.Services, err)
			}
			text, raw := p.FormatText(false), ""
			if out, err := p.FormatJSON(); err == nil {
				raw = string(out)
			}
			s := p.Services[0]
			if (s.NoEffect == says) != tt.noEffect || strings.Contains(text, "! Service shop/web: "+says) != tt.noEffect || strings.Contains(raw, `"restrictionsWithoutEffect": "`+says) != tt.noEffect {
				t.Errorf("%+v\n%s\n%s", s, text, raw)
			}
			if strings.Contains(s.Refused, says) != tt.refused || tt.refused != (p.Changes == 0) {
				t.Errorf("%+v, %d changes", s, p.Changes)
			}
		})
	}
}
