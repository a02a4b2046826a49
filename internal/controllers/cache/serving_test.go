// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/k8s/metadata"
)

// Resources are kept when the class flag changes, and released at the user's request.
func TestRetainedResourcesByClass(t *testing.T) {
	const azure, typo = "weir.dev/azure", "weir.dev/azrue"
	recorded := func(class string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Annotations = map[string]string{metadata.ClassAnnotation: class} }
	}
	for _, tt := range []struct {
		about string
		class *string
		flag  string
		edit  func(*corev1.Service)
		keeps bool
	}{
		{"the flag is the Service's class", new(azure), azure, recorded(azure), false},
		{"a typo", new(azure), typo, recorded(azure), true},
		{"an earlier Weir has recorded no class", new(azure), typo, nil, true},
		{"the flag was empty", nil, azure, recorded(""), true},
		{"the flag becomes empty", new(azure), "", recorded(azure), true},
		{"no finalizer: Weir has not served it", new(azure), typo, func(s *corev1.Service) { s.Finalizers = nil }, false},
		{"a person had it go by way of another type", new("other"), azure, recorded(azure), false},
		{"a person did, and the flag changed as well", new("other"), typo, recorded(azure), false},
		{"a person took the class away", nil, azure, recorded(azure), false},
		{"another type", new(azure), typo, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }, false},
		{"it is being deleted", new(azure), typo, func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) }, false},
	} {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Finalizers: []string{metadata.ServiceFinalizer}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: tt.class},
		}
		if tt.edit != nil {
			tt.edit(s)
		}
		if got := OwnershipOf(s).IsRetained(tt.flag, RecordedClass(s)); got != tt.keeps {
			t.Errorf("%s: kept is %t, want %t", tt.about, got, tt.keeps)
		}
	}
}
