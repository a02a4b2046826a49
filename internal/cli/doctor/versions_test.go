// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/api/v1alpha1"
)

// An api-version rejection is found in the conditions of the affected objects.
func TestRejectedVersions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	conditions := func(message string) []metav1.Condition {
		return []metav1.Condition{{Type: "T", Status: metav1.ConditionFalse, Reason: "Failed", Message: message}}
	}
	const rejection = "write load balancer kubernetes: 400 UpdateOnResourceNotAllowedWithApiVersion: another tool has set it"
	for name, tt := range map[string]struct {
		objects []client.Object
		want    Result
		names   string
	}{
		"nothing is rejected": {[]client.Object{&v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop"}, Status: v1alpha1.BackendPoolStatus{Conditions: conditions("429 Busy")}}}, OK, ""},
		"a pool":              {[]client.Object{&v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop"}, Status: v1alpha1.BackendPoolStatus{Conditions: conditions(rejection)}}}, Warn, "BackendPool shop/p"},
		"a Service":           {[]client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Status: corev1.ServiceStatus{Conditions: conditions(rejection)}}}, Warn, "Service shop/web"},
	} {
		d := Doctor{API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt.objects...).WithStatusSubresource(tt.objects...).Build()}
		for _, o := range tt.objects {
			if err := d.API.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		got := d.checkAPIVersions(t.Context())
		if len(got) != 1 || got[0].Result != tt.want || !strings.Contains(got[0].Why, tt.names) || (tt.want == Warn) != strings.Contains(got[0].Fix, "troubleshooting.md") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
