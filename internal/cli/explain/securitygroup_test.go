// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/services/servicelb"
)

// The explanation of a Service shows that Weir opens no security group for it.
func TestAServiceWithoutASecurityGroup(t *testing.T) {
	api, s := server(), &corev1.Service{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, s); err != nil {
		t.Fatal(err)
	}
	s.Status.Conditions = []metav1.Condition{{
		Type: servicelb.TypeSecurityGroup, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonNotManaged, Message: "Weir opens no security group", LastTransitionTime: ago(time.Minute),
	}}
	if err := api.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got, err := Reader{API: api, Now: noon}.ExplainService(t.Context(), "shop", "web")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := got.WriteText(&text); err != nil || !strings.Contains(text.String(), "weir.dev/SecurityGroup: False for 60s, NotManaged: Weir opens no security group") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
