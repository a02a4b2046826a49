// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// The cache keeps limits and grants of a Namespace, and of an invalid value only a prefix.
func TestAStrippedNamespaceKeepsItsBounds(t *testing.T) {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: map[string]string{
		service.MaxRules: "5", service.MaxFrontends: strings.Repeat("7", 200<<10), service.LoadBalancersAnnotation: "*", "other": "x",
	}}}
	metadata.StripNamespace(n)
	if len(n.Annotations) != 3 || n.Annotations[service.MaxRules] != "5" || n.Annotations[service.LoadBalancersAnnotation] != "*" || len(n.Annotations[service.MaxFrontends]) > 64 {
		t.Errorf("%q", n.Annotations)
	}
	if problems := service.ParseNamespaceSettings(n.Name, n.Annotations).InvalidMessages(); len(problems) != 1 {
		t.Errorf("problems: %q", problems)
	}
}
