// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
)

const publicIPGrant = "weir.dev/allowed-public-ips"

// namedIP makes a Service use a public IP that Weir did not create.
func namedIP(name string) func(*corev1.Service) {
	return func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-pip-name", name) }
}

// addressOf returns the address in a Service's status, or "".
func (s *Stage) addressOf(key string) string {
	svc := &corev1.Service{}
	failOn(s.userClient.Get(ctx, parseKey(key), svc))
	for _, in := range svc.Status.LoadBalancer.Ingress {
		return in.IP
	}
	return ""
}

// expectOwner fails unless a namespace is recorded as the owner of a public IP.
func (s *Stage) expectOwner(namespace, name string) {
	m := &corev1.ConfigMap{}
	failOn(s.userClient.Get(ctx, client.ObjectKey{Namespace: weirNamespace, Name: "weir-public-ips"}, m))
	if !strings.Contains(m.Data["owners"], strings.ToLower(network+"publicIPAddresses/"+name)+" "+namespace+" ") {
		failOn(fmt.Errorf("%s does not own %s: %q", namespace, name, m.Data["owners"]))
	}
}

func (s *Stage) refused(key, reason string) {
	events := &corev1.EventList{}
	failOn(s.userClient.List(ctx, events, client.InNamespace(parseKey(key).Namespace)))
	for _, e := range events.Items {
		if e.InvolvedObject.Name == parseKey(key).Name && strings.Contains(e.Message, reason) {
			return
		}
	}
	failOn(fmt.Errorf("no event of %s says %q: %v", key, reason, events.Items))
}

// While a Service is recreated, a Service of another namespace does not get its public IP: not from
// the same process, the next one, or another leader. A grant takes effect at once.
func TestARecreatedServiceKeepsItsPublicIP(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			runStage(t, Options{Replicas: replicas}, func(s *Stage) {
				failOn(s.AddNode(0))
				failOn(s.CreatePublicIP("vip"))
				s.Start()
				failOn(s.AddService("shop/bank", namedIP("vip")))
				failOn(s.WaitInSync(2 * time.Minute))
				vip := s.addressOf("shop/bank")
				s.expectOwner("shop", "vip")

				failOn(s.AddService("blog/thief", namedIP("vip")))
				s.Sleep(time.Minute)
				for _, away := range []func(){
					func() { s.Sleep(2 * time.Second) },
					func() { s.Sleep(20 * time.Minute) },
					func() {
						for n := range replicas {
							s.KillProcess(n)
						}
						s.Sleep(2 * time.Minute)
					},
				} {
					failOn(s.DeleteService("shop/bank"))
					for !apierrors.IsNotFound(s.userClient.Get(ctx, parseKey("shop/bank"), &corev1.Service{})) {
						s.Sleep(time.Second)
					}
					away()
					failOn(s.AddService("shop/bank", namedIP("vip")))
					s.Sleep(3 * time.Minute)
					if got := s.addressOf("shop/bank"); got != vip {
						failOn(fmt.Errorf("shop/bank has %q, and had %s", got, vip))
					}
					if got := s.addressOf("blog/thief"); got != "" {
						failOn(fmt.Errorf("blog/thief has %s", got))
					}
				}
				s.refused("blog/thief", "public IP vip belongs to namespace shop, which has used it since 2000-01-01T")

				failOn(s.DeleteService("shop/bank"))
				s.Sleep(time.Minute)
				failOn(s.ChangeNamespace("blog", func(n *corev1.Namespace) { n.Annotations = map[string]string{publicIPGrant: "rg/vip"} }))
				s.Sleep(30 * time.Second)
				if got := s.addressOf("blog/thief"); got != vip {
					failOn(fmt.Errorf("blog has a grant, and no address: %q", got))
				}
				s.expectOwner("blog", "vip")
				failOn(s.WaitInSync(2 * time.Minute))
			})
		})
	}
}

// No annotation changes the DNS label of a public IP that Weir did not create.
func TestADNSLabelNeedsAGrant(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		id := network + "publicIPAddresses/vip"
		failOn(s.emulator.Put(id, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","dnsSettings":{"domainNameLabel":"bank"}}}`)))
		label := func() string {
			body, _ := s.emulator.Get(id)
			var ip struct {
				Properties struct {
					DNSSettings struct{ DomainNameLabel string }
				}
			}
			failOn(json.Unmarshal(body, &ip))
			return ip.Properties.DNSSettings.DomainNameLabel
		}
		s.Start()
		ask := func(value string) func(*corev1.Service) {
			return func(svc *corev1.Service) {
				namedIP("vip")(svc)
				svc.Annotations[annotation+"azure-dns-label-name"] = value // also if empty
			}
		}
		failOn(s.AddService("blog/thief", ask("evil")))
		for _, value := range []string{"evil", ""} {
			failOn(s.ChangeService("blog/thief", ask(value)))
			s.Sleep(2 * time.Minute)
			if got := label(); got != "bank" {
				failOn(fmt.Errorf("the label is %q", got))
			}
		}
		if calls := s.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)); len(calls) > 0 {
			failOn(fmt.Errorf("Azure was written: %v", calls))
		}
		s.refused("blog/thief", "changes only with a grant")
		failOn(s.ChangeNamespace("blog", func(n *corev1.Namespace) { n.Annotations = map[string]string{publicIPGrant: "vip"} }))
		failOn(s.ChangeService("blog/thief", ask("blog")))
		s.Sleep(time.Minute)
		if got := label(); got != "blog" {
			failOn(fmt.Errorf("granted, and the label is %q", got))
		}
		failOn(s.DeleteService("blog/thief"))
		s.Sleep(time.Minute)
		if got := label(); got != "blog" {
			failOn(fmt.Errorf("the Service is gone, and the label is %q", got))
		}
	})
}

// Without a record, a process records the public IP owners without Azure writes. Later only changed
// owners are written.
func TestOwnersAreRecordedWithoutAWrite(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		failOn(s.CreatePublicIP("vip"))
		failOn(s.CreatePublicIP("spare"))
		s.Start()
		failOn(s.AddService("shop/bank", namedIP("vip")))
		failOn(s.WaitInSync(2 * time.Minute))
		failOn(s.userClient.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: weirNamespace, Name: "weir-public-ips"}}))
		s.emulator.ClearCalls()
		s.KillProcess(0)
		s.Sleep(2 * time.Minute)
		s.expectOwner("shop", "vip")
		if calls := s.emulator.Calls(armemu.ByKind(armemu.KindPut, armemu.KindDelete)); len(calls) > 0 {
			failOn(fmt.Errorf("Azure was written: %v", calls))
		}
		before := s.ownerWrites()
		failOn(s.AddService("blog/thief", namedIP("vip")))
		for n := range 50 { // as fast as a tenant can write
			failOn(s.ChangeService("blog/thief", func(svc *corev1.Service) {
				setAnnotation(svc, "n", fmt.Sprint(n))
				svc.Spec.Ports[0].Port = int32(1000 + n)
			}))
			s.Sleep(time.Second)
		}
		if after := s.ownerWrites(); after != before {
			failOn(fmt.Errorf("the record was written %d times for a Service that is refused", after-before))
		}
	})
}

func (s *Stage) ownerWrites() (n int) {
	for _, r := range s.api.Log() {
		if isWrite(r) && r.Name == "weir-public-ips" {
			n++
		}
	}
	return n
}
