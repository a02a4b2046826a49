// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/service"
)

// Two Services with colliding pool names get separate pools, and an existing one keeps its name.
func TestTwoServicesWhoseNamesMakeOnePool(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createLoadBalanced("a-web")
	s.waitForAddresses("a-web", 1)

	other := &testEnv{T: t, ns: s.ns + "-a", no: s.no}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.ns}})
	usual := s.ns + "-a-web"
	hashed := service.HashedPoolName(usual, other.ns+"/web")
	other.createPools(hashed)
	other.createLoadBalanced("web")
	other.waitForAddresses("web", 1)
	if got, want := other.managedPools(), fmt.Sprintf("web.kubernetes (kubernetes %s IPv4)", hashed); got != want {
		t.Errorf("BackendPools %s, want %s", got, want)
	}
	if got, want := s.managedPools(), fmt.Sprintf("a-web.kubernetes (kubernetes %s IPv4)", usual); got != want {
		t.Errorf("BackendPools %s, want %s", got, want)
	}

	s.delete(&corev1.Service{}, "a-web")
	s.waitUntil(func() string {
		if api.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "a-web"}, &corev1.Service{}) == nil {
			return "the Service is still there"
		}
		return ""
	})
	other.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "30"))
	if last := other.waitForRequests("web", 2)[1]; last.Desired.Pools[0].Name != hashed || last.DedicatedPools[0] != hashed {
		t.Errorf("who stays is given pool %s of %v", last.Desired.Pools[0].Name, last.DedicatedPools)
	}
	other.waitForEvent("Service", "web", services.EventSyncFailed, 0)
}
