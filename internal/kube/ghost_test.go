// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/ensure"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Somebody loses patience with a Service that cannot go, and takes its finalizer away: it is
// gone, and Weir goes on until nothing of it is left.
func TestWhoTakesAFinalizerAwayLeavesTheRestToWeir(t *testing.T) {
	s := newScene(t)
	s.wants("web")
	svc := s.balanced("web", 1)
	stuck := true
	balancers.answers(s.ns+"/web", func(req ensure.Request) ensure.Result {
		if stuck {
			return ensure.Result{Request: req, Err: &fault.Fault{Class: fault.Terminal, Code: "InternalServerError", Err: errors.New("not now")}}
		}
		return balancers.succeeds(req)
	})
	s.delete(&corev1.Service{}, "web")
	s.asks(s.ns+"/web", 3, func(ensure.Request) bool { return true })
	s.edits("web", func(svc *corev1.Service) { svc.Finalizers = nil })
	s.until(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(svc), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return "the Service is still there"
		}
		return ""
	})
	balancers.mu.Lock()
	before := len(balancers.asked[s.ns+"/web"])
	stuck = false
	balancers.mu.Unlock()
	s.asks(s.ns+"/web", before+1, func(r ensure.Request) bool {
		return r.Wish == nil && r.Owner == service.Owner(string(svc.UID)) && len(r.Leave) == 1 && len(r.Shown) == 1
	})
}

// One that went while nobody watched is named by the BackendPool that goes with it. Whoever
// writes such a BackendPool himself names nobody who is there, however he spells it.
func TestTheBackendPoolOfAServiceThatIsGoneNamesIt(t *testing.T) {
	s := newScene(t)
	s.wants("web")
	web := s.balanced("web", 1)
	s.leaves("same", web.UID)
	s.leaves("capitals", types.UID(strings.ToUpper(string(web.UID))))
	s.leaves("anything", "ks")
	uid := uuid.NewUUID()
	s.leaves("lost", uid)
	s.asks(s.ns+"/lost", 1, func(r ensure.Request) bool {
		return r.Wish == nil && r.Owner == service.Owner(string(uid)) && len(r.Leave) == 1 && r.Leave[0].Name == "kubernetes"
	})
	for _, name := range []string{"same", "capitals", "anything"} {
		s.asked(name, 0)
	}
}

// leaves makes a BackendPool and deletes it, as if it were that of a Service that is gone.
func (s *scene) leaves(service string, uid types.UID) {
	s.Helper()
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns, Name: service + ".kubernetes", Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"}, Finalizers: []string{v1alpha1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service, UID: uid}},
		},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef: &v1alpha1.ServiceReference{Name: service}, IPFamily: string(lb.IPv4),
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: "kubernetes"}, PoolName: s.ns + "-" + service,
		},
	}
	if err := api.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
	if err := api.Delete(s.Context(), p); err != nil {
		s.Fatal(err)
	}
	s.goes(p.Name)
}

// asks waits until the load balancers were asked so often, and checks that very request: the
// BackendPool of a Service that is gone may ask once more.
func (s *scene) asks(name string, times int, check func(ensure.Request) bool) {
	s.Helper()
	s.until(func() string {
		balancers.mu.Lock()
		defer balancers.mu.Unlock()
		all := balancers.asked[name]
		switch {
		case len(all) < times:
			return fmt.Sprintf("asked %d times, want %d", len(all), times)
		case !check(all[times-1]):
			return fmt.Sprintf("request %d is %+v", times, all[times-1])
		}
		return ""
	})
}
