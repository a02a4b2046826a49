// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
)

const privateVIP = "10.0.200.9"

// requestsPrivateIP makes a Service request a private address.
func requestsPrivateIP(ip string) func(*corev1.Service) {
	return func(svc *corev1.Service) {
		setAnnotation(svc, annotation+"azure-load-balancer-internal", "true")
		svc.Spec.LoadBalancerIP = ip
	}
}

// expectReserved fails unless an address is reserved for a namespace.
func (s *Stage) expectReserved(namespace, ip string) {
	m := &corev1.ConfigMap{}
	failOn(s.userClient.Get(ctx, client.ObjectKey{Namespace: weirNamespace, Name: "weir-private-ips"}, m))
	if !strings.Contains(m.Data["reservations"], "/subnets/nodes "+ip+" "+namespace+" ") {
		failOn(fmt.Errorf("%s is not reserved for %s: %q", ip, namespace, m.Data["reservations"]))
	}
}

// expectAddress fails unless the status of a Service shows an address; "" means none.
func (s *Stage) expectAddress(key, ip string) {
	if got := s.addressOf(key); got != ip {
		failOn(fmt.Errorf("%s has %q, want %q", key, got, ip))
	}
}

// deleteAndWait deletes a Service and waits for its removal.
func (s *Stage) deleteAndWait(key string) {
	failOn(s.DeleteService(key))
	for !apierrors.IsNotFound(s.userClient.Get(ctx, parseKey(key), &corev1.Service{})) {
		s.Sleep(time.Second)
	}
}

// reservationWrites counts writes of the private address reservations.
func (s *Stage) reservationWrites() (n int) {
	for _, r := range s.api.Log() {
		if isWrite(r) && r.Name == "weir-private-ips" {
			n++
		}
	}
	return n
}

// While a Service is recreated, a Service of another namespace does not get its private address:
// not from the same process, the next one, or another leader. After an hour the address is free.
func TestARecreatedServiceKeepsItsPrivateAddress(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			runStage(t, Options{Replicas: replicas}, func(s *Stage) {
				failOn(s.AddNode(0))
				s.Start()
				failOn(s.AddService("shop/bank", requestsPrivateIP(privateVIP)))
				failOn(s.WaitInSync(2 * time.Minute))
				s.expectAddress("shop/bank", privateVIP)
				s.expectReserved("shop", privateVIP)
				failOn(s.AddService("blog/thief", requestsPrivateIP(privateVIP)))
				s.Sleep(time.Minute)
				for _, away := range []func(){
					func() { s.Sleep(2 * time.Second) },
					func() { s.Sleep(40 * time.Minute) },
					func() {
						for n := range replicas {
							s.KillProcess(n)
						}
						s.Sleep(2 * time.Minute)
					},
				} {
					s.deleteAndWait("shop/bank")
					away()
					failOn(s.AddService("shop/bank", requestsPrivateIP(privateVIP)))
					s.Sleep(3 * time.Minute)
					s.expectAddress("shop/bank", privateVIP)
					s.expectAddress("blog/thief", "")
				}
				s.refused("blog/thief", "private address "+privateVIP+" of subnet nodes is reserved for namespace shop, which used it last, until 2000-01-01T0")

				s.deleteAndWait("shop/bank")
				s.Sleep(55 * time.Minute)
				s.expectAddress("blog/thief", "")
				s.Sleep(25 * time.Minute) // until the Service is retried
				s.expectAddress("blog/thief", privateVIP)
				s.expectReserved("blog", privateVIP)
			})
		})
	}
}

// If the process dies between the reservation and the load balancer write, the next one gives the
// address to the recorded namespace only.
func TestAPrivateAddressIsRecordedBeforeItIsUsed(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AzureFaults("{name: put, match: {path: '**/loadBalancers/*', kind: put}, action: {drop: true}}"))
		failOn(s.AddService("shop/bank", requestsPrivateIP(privateVIP)))
		s.Sleep(5 * time.Second)
		s.expectReserved("shop", privateVIP)
		s.KillProcess(0)
		failOn(s.AddService("blog/thief", requestsPrivateIP(privateVIP)))
		s.deleteAndWait("shop/bank")
		failOn(s.AzureFaults())
		s.Sleep(2 * time.Minute)
		s.expectAddress("blog/thief", "")
		failOn(s.AddService("shop/bank", requestsPrivateIP(privateVIP)))
		s.Sleep(3 * time.Minute)
		s.expectAddress("shop/bank", privateVIP)
		s.expectAddress("blog/thief", "")
	})
}

// Without reservations, a process records the private addresses in use without Azure writes. A
// rejected Service, or one that keeps its address, does not write the reservations.
func TestReservationsAreRecordedWithoutAWrite(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/bank", requestsPrivateIP(privateVIP)))
		failOn(s.WaitInSync(2 * time.Minute))
		m := &corev1.ConfigMap{}
		m.Namespace, m.Name = weirNamespace, "weir-private-ips"
		failOn(s.userClient.Delete(ctx, m))
		s.emulator.ClearCalls()
		s.KillProcess(0)
		s.Sleep(2 * time.Minute)
		s.expectReserved("shop", privateVIP)
		if calls := s.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)); len(calls) > 0 {
			failOn(fmt.Errorf("Azure was written: %v", calls))
		}
		before := s.reservationWrites()
		failOn(s.AddService("blog/thief", requestsPrivateIP(privateVIP)))
		for n := range 50 { // as fast as a tenant can write
			for _, key := range []string{"blog/thief", "shop/bank"} {
				failOn(s.ChangeService(key, func(svc *corev1.Service) { svc.Spec.Ports[0].Port = int32(1000 + n) }))
			}
			s.Sleep(time.Second)
		}
		if after := s.reservationWrites(); after != before {
			failOn(fmt.Errorf("the record was written %d times for a Service that is refused", after-before))
		}
	})
}
