// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/test/objects"
)

// A dry run keeps the members of its pool where they are, whatever becomes of the BackendPool.
func TestADryRunNeedsWhatItHas(t *testing.T) {
	for _, dry := range []string{"", "true"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", Finalizers: []string{view.ServiceFinalizer},
			Annotations: map[string]string{view.PlaceAnnotation: "lb", view.DryRunAnnotation: dry},
		}}
		s.Spec.Type = corev1.ServiceTypeClusterIP // it was a Local one with a load balancer
		p := objects.BackendPool("web.lb", 0, objects.Took, objects.In("ns"), objects.RecordedAs("uid"))
		o := holding(t, p, s)
		o.Balancers = balancers{"lb"}
		if got := o.Needed(p); got != (dry != "") {
			t.Errorf("dry run %q: needed %v", dry, got)
		}
	}
}
