// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/lab/armemu"
)

// A Service's own pool with foreign members is retained when the Service gives up its load
// balancer; Weir's members are removed.
func TestWeirsAddressesLeaveAPoolThatStaysForOthers(t *testing.T) {
	for name, gives := range map[string]func(s *Stage){
		"it is deleted": func(s *Stage) { failOn(s.DeleteService("shop/web")) },
		"its dependents are deleted with it": func(s *Stage) {
			failOn(s.DeleteService("shop/web"))
			s.Sleep(time.Second)
			failOn(s.userClient.Delete(ctx, &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.kubernetes"}}))
		},
		"its type changes": func(s *Stage) { failOn(s.ChangeService("shop/web", setClusterIPType)) },
		"the process dies while it gives it up": func(s *Stage) {
			failOn(s.DeleteService("shop/web"))
			s.Sleep(15 * time.Second) // the load balancer is written
			s.replicas[0].stopProcess()
			s.replicas[0].startLoop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			runStage(t, Options{}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/other", nil))
				failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
				failOn(s.WaitInSync(10 * time.Minute))
				failOn(s.AddForeign("kubernetes/shop-web", "10.0.9.1"))
				gives(s)
				failOn(s.WaitInSync(10 * time.Minute))
				s.Sleep(settleTime)
				failOn(s.CheckIdleHour(400))
			})
		})
	}
}

// Resources retained for foreign members are deleted once those are removed, even without a
// Service: the pool, the load balancer, its last frontend and the public IP, wherever the process
// dies.
func TestReleasedPoolIsRemovedWithoutAService(t *testing.T) {
	balancer := func(c armemu.Call) bool {
		return c.Method == http.MethodDelete && strings.EqualFold(c.Resource, network+"loadBalancers/"+clusterName)
	}
	for name, disturb := range map[string]func(s *Stage){
		"nothing happens": func(*Stage) {},
		"the process dies before": func(s *Stage) {
			s.KillProcess(0)
		},
		"the process dies while the load balancer is deleted": func(s *Stage) {
			for len(s.emulator.Calls(balancer)) == 0 {
				s.Sleep(time.Second)
			}
			s.KillProcess(0)
		},
		"the process dies while the public IP is deleted": func(s *Stage) {
			for len(s.emulator.Calls(armemu.ByKind(armemu.KindDelete))) < 2 {
				s.Sleep(time.Second)
			}
			s.KillProcess(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			runStage(t, Options{}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				s.Start()
				failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
				failOn(s.WaitInSync(10 * time.Minute))
				failOn(s.AddForeign("kubernetes/shop-web", "10.0.9.1"))
				failOn(s.DeleteService("shop/web"))
				failOn(s.WaitInSync(10 * time.Minute))
				s.expectEvent("BackendPoolKept", "Azure requires it while the load balancer has backend pool shop-web")
				s.Sleep(settleTime)
				failOn(s.CheckIdleHour(400)) // nothing is written while the foreign members exist
				s.emulator.ClearCalls()
				failOn(s.removeForeign("kubernetes/shop-web", "10.0.9.1"))
				disturb(s)
				failOn(s.WaitInSync(25 * time.Minute))
				m := &corev1.ConfigMap{}
				failOn(s.userClient.Get(ctx, client.ObjectKey{Namespace: weirNamespace, Name: "weir-controller"}, m))
				if remaining := m.Data["left-pools"]; remaining != "" {
					failOn(fmt.Errorf("left on record: %s", remaining))
				}
				failOn(s.CheckIdleHour(400))
			})
		})
	}
}

// A Service gets an event for a retained frontend of a family it gave up and for an unused public
// IP. An annotation deletes it.
func TestServiceReportsRetainedParts(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		families := func(families ...corev1.IPFamily) func(*corev1.Service) {
			return func(svc *corev1.Service) { svc.Spec.IPFamilies = families }
		}
		failOn(s.AddService("shop/six", families(corev1.IPv6Protocol, corev1.IPv4Protocol)))
		failOn(s.WaitInSync(5 * time.Minute))
		failOn(s.ChangeService("shop/six", families(corev1.IPv6Protocol)))
		s.Sleep(5 * time.Minute)
		s.expectEvent("BackendPoolKept", "is retained without rules: Azure requires it while the load balancer has IPv6 frontends")
	})
	several := func(c *config.Config) {
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: secondName}}
	}
	runStage(t, Options{Configure: several}, func(s *Stage) {
		for n := range 2 {
			failOn(s.AddNode(n))
		}
		s.Start()
		on := func(name string) func(*corev1.Service) {
			return func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-configurations", name) }
		}
		failOn(s.AddService("shop/one", on(clusterName)))
		s.Sleep(2 * time.Minute)
		svc := &corev1.Service{}
		failOn(s.userClient.Get(ctx, parseKey("shop/one"), svc))
		made := clusterName + "-" + ownerName(svc)
		failOn(s.AddService("shop/two", func(svc *corev1.Service) {
			svc.Spec.Ports[0].Port = 8443
			namedIP(made)(svc)
			on(clusterName)(svc)
		}))
		s.Sleep(2 * time.Minute)
		for _, name := range []string{secondName, clusterName} {
			failOn(s.ChangeService("shop/one", on(name)))
			s.Sleep(10 * time.Minute)
		}
		s.expectEvent("PublicIPUnused", "public IP "+made+"-IPv4 (")
		exists := func(name string) bool {
			_, ok := s.emulator.Get(network + "publicIPAddresses/" + name)
			return ok
		}
		if !exists(made + "-IPv4") {
			failOn(errors.New("the public IP was deleted, and nobody had asked for that"))
		}
		failOn(s.ChangeService("shop/one", func(svc *corev1.Service) { setAnnotation(svc, "weir.dev/allow-removal", "true") }))
		s.Sleep(time.Minute)
		if exists(made+"-IPv4") || !exists(made) {
			failOn(errors.New("it is there yet, or the one that is in use is not"))
		}
	})
}
