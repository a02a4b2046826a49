// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"
	"testing"
)

// A plan rejects a Service beyond a bound of its Namespace, like the controller.
func TestPlansOfServicesBeyondABound(t *testing.T) {
	var tags []string
	for i := range 1000 {
		tags = append(tags, fmt.Sprint("AzureCloud.r", i))
	}
	service := fmt.Sprintf(someService, "web", `, annotations: {service.beta.kubernetes.io/azure-allowed-service-tags: "`+strings.Join(tags, ",")+`"}`)
	plain := fmt.Sprintf(someService, "web", "")
	namespace := func(annotation string) string {
		return "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {" + annotation + "}}}\n"
	}
	for _, tt := range []struct {
		about, objects, refused string
	}{
		{"within the bound", plain + namespace(`weir.dev/max-rules: "1"`), ""},
		{"rules", plain + namespace(`weir.dev/max-rules: "0"`), "may have 0 (annotation weir.dev/max-rules of Namespace shop)"},
		{"frontends", plain + namespace(`weir.dev/max-frontends: "0"`), "may have 0 (annotation weir.dev/max-frontends of Namespace shop)"},
		{"security rules", service, "namespace shop would have 1000 rules in the security group and may have 900 (default: 100 are reserved"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			t.Parallel()
			p, err := emptyCloud(t).plan(t, planned+"azure.json", tt.objects)
			if err != nil || len(p.Services) != 1 {
				t.Fatal(p.Services, err)
			}
			if s := p.Services[0]; !strings.Contains(s.Refused, tt.refused) || (tt.refused == "") != (s.Refused == "") || tt.refused != "" && p.Changes > 0 {
				t.Errorf("%+v, %d changes", s, p.Changes)
			}
		})
	}
}
