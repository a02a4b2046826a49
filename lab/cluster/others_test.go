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
		"it is deleted": func(s *Stage) { must(s.DeleteService("shop/web")) },
		"its dependents are deleted with it": func(s *Stage) {
			must(s.DeleteService("shop/web"))
			s.Pass(time.Second)
			must(s.people.Delete(ctx, &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.kubernetes"}}))
		},
		"its type changes": func(s *Stage) { must(s.ChangeService("shop/web", clusterIP)) },
		"the process dies while it gives it up": func(s *Stage) {
			must(s.DeleteService("shop/web"))
			s.Pass(15 * time.Second) // the load balancer is written
			s.replicas[0].stop()
			s.replicas[0].start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/other", nil))
				must(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				must(s.Endpoints("shop/web", map[int]bool{0: true, 1: true}))
				must(s.Settles(10 * time.Minute))
				must(s.AddForeign("kubernetes/shop-web", "10.0.9.1"))
				gives(s)
				must(s.Settles(10 * time.Minute))
				s.Pass(settled)
				must(s.Rests(400))
			})
		})
	}
}

// Resources retained for foreign members are deleted once those are gone, even without a Service:
// the pool, the load balancer, its last frontend and the public IP, wherever the process dies.
func TestWhatWasLeftToOthersGoesWithoutAService(t *testing.T) {
	balancer := func(c armemu.Call) bool {
		return c.Method == http.MethodDelete && strings.EqualFold(c.Resource, network+"loadBalancers/"+clusterName)
	}
	for name, disturb := range map[string]func(s *Stage){
		"nothing happens": func(*Stage) {},
		"the process dies before": func(s *Stage) {
			s.Kill(0)
		},
		"the process dies while the load balancer is deleted": func(s *Stage) {
			for len(s.emu.Calls(balancer)) == 0 {
				s.Pass(time.Second)
			}
			s.Kill(0)
		},
		"the process dies while the public IP is deleted": func(s *Stage) {
			for len(s.emu.Calls(armemu.ByKind(armemu.KindDelete))) < 2 {
				s.Pass(time.Second)
			}
			s.Kill(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				s.Start()
				must(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
				must(s.Endpoints("shop/web", map[int]bool{0: true, 1: true}))
				must(s.Settles(10 * time.Minute))
				must(s.AddForeign("kubernetes/shop-web", "10.0.9.1"))
				must(s.DeleteService("shop/web"))
				must(s.Settles(10 * time.Minute))
				s.says("BackendPoolKept", "Azure requires it while the load balancer has backend pool shop-web")
				s.Pass(settled)
				must(s.Rests(400)) // nothing is written while the foreign members exist
				s.emu.ClearCalls()
				must(s.removeForeign("kubernetes/shop-web", "10.0.9.1"))
				disturb(s)
				must(s.Settles(25 * time.Minute))
				m := &corev1.ConfigMap{}
				must(s.people.Get(ctx, client.ObjectKey{Namespace: weirNamespace, Name: "weir-controller"}, m))
				if left := m.Data["left-pools"]; left != "" {
					must(fmt.Errorf("left on record: %s", left))
				}
				must(s.Rests(400))
			})
		})
	}
}

// A Service gets an event for a retained frontend of a family it gave up and for an unused public
// IP. An annotation deletes it.
func TestAServiceIsToldWhatStaysForIt(t *testing.T) {
	stage(t, Options{}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		families := func(all ...corev1.IPFamily) func(*corev1.Service) {
			return func(svc *corev1.Service) { svc.Spec.IPFamilies = all }
		}
		must(s.AddService("shop/six", families(corev1.IPv6Protocol, corev1.IPv4Protocol)))
		must(s.Settles(5 * time.Minute))
		must(s.ChangeService("shop/six", families(corev1.IPv6Protocol)))
		s.Pass(5 * time.Minute)
		s.says("BackendPoolKept", "stays without rules: Azure requires it while the load balancer has IPv6 frontends")
	})
	several := func(c *config.Config) {
		c.Configurations = []config.LoadBalancerConfiguration{{Name: clusterName}, {Name: second}}
	}
	stage(t, Options{Configure: several}, func(s *Stage) {
		for n := range 2 {
			must(s.AddNode(n))
		}
		s.Start()
		on := func(name string) func(*corev1.Service) {
			return func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-configurations", name) }
		}
		must(s.AddService("shop/one", on(clusterName)))
		s.Pass(2 * time.Minute)
		svc := &corev1.Service{}
		must(s.people.Get(ctx, split("shop/one"), svc))
		made := clusterName + "-" + owner(svc)
		must(s.AddService("shop/two", func(svc *corev1.Service) {
			svc.Spec.Ports[0].Port = 8443
			namedIP(made)(svc)
			on(clusterName)(svc)
		}))
		s.Pass(2 * time.Minute)
		for _, name := range []string{second, clusterName} {
			must(s.ChangeService("shop/one", on(name)))
			s.Pass(10 * time.Minute)
		}
		s.says("PublicIPUnused", "public IP "+made+"-IPv4 (")
		exists := func(name string) bool {
			_, there := s.emu.Get(network + "publicIPAddresses/" + name)
			return there
		}
		if !exists(made + "-IPv4") {
			must(errors.New("the public IP was deleted, and nobody had asked for that"))
		}
		must(s.ChangeService("shop/one", func(svc *corev1.Service) { setAnnotation(svc, "weir.dev/allow-removal", "true") }))
		s.Pass(time.Minute)
		if exists(made+"-IPv4") || !exists(made) {
			must(errors.New("it is there yet, or the one that is in use is not"))
		}
	})
}
