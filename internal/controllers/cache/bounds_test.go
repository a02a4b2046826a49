// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service/tenancy"
)

// The cache keeps limits and grants of a Namespace, and of an invalid value only a prefix.
func TestAStrippedNamespaceKeepsItsBounds(t *testing.T) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: map[string]string{
		tenancy.MaxRules: "5", tenancy.MaxFrontends: strings.Repeat("7", 200<<10), tenancy.LoadBalancersAnnotation: "*", "other": "x",
	}}}
	metadata.StripNamespace(n)
	if len(n.Annotations) != 3 || n.Annotations[tenancy.MaxRules] != "5" || n.Annotations[tenancy.LoadBalancersAnnotation] != "*" || len(n.Annotations[tenancy.MaxFrontends]) > 64 {
		t.Errorf("%q", n.Annotations)
	}
	if problems := tenancy.ParseSettings(n.Name, n.Annotations).InvalidMessages(); len(problems) != 1 {
		t.Errorf("problems: %q", problems)
	}
}
