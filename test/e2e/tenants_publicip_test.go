// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
)

const serviceAnnotation = "service.beta.kubernetes.io/"

// A tenant with the stock role edit can neither take another namespace's public IP while its
// Service is recreated, nor change the DNS label of a public IP that Weir did not create, by any
// reference.
func TestATenantTakesNoPublicIPOfAnother(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	b := l.neighbour()
	a := b.attacker(rand.New(rand.NewPCG(1, 1)))
	vip, spare := network+"/publicIPAddresses/vip-"+l.namespace, network+"/publicIPAddresses/spare-"+l.namespace
	for id, label := range map[string]string{vip: "bank", spare: "spare"} {
		l.must(l.emulator.Put(id, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","dnsSettings":{"domainNameLabel":"`+label+`"}}}`)))
	}
	name := func(id string) string { return id[strings.LastIndex(id, "/")+1:] }
	bank := func(s *corev1.Service) { s.Annotations[serviceAnnotation+"azure-pip-name"] = name(vip) }
	l.controller("--cluster-name", l.namespace)
	l.createLoadBalancerService("bank", bank, b.nodes[0])
	address := l.ingress("bank", 1)[0]

	thieves := map[string]map[string]string{
		"by-name":    {"azure-pip-name": name(vip)},
		"by-address": {"azure-load-balancer-ipv4": address},
		"label":      {"azure-pip-name": name(spare), "azure-dns-label-name": "evil"},
		"no-label":   {"azure-pip-name": name(spare), "azure-dns-label-name": ""},
		"tagged":     {"azure-pip-name": name(vip), "azure-pip-tags": "weir-allowed-namespaces=" + a.namespace},
	}
	for called, annotations := range thieves {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: called, Namespace: a.namespace, Annotations: map[string]string{}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: 80}}},
		}
		for key, value := range annotations {
			s.Annotations[serviceAnnotation+key] = value
		}
		l.must(a.as.Create(t.Context(), s))
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	if err := a.as.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"weir.dev/allowed-public-ips":"*"}}}`))); !apierrors.IsForbidden(err) {
		t.Fatalf("the tenant grants itself public IPs: %v", err)
	}
	refused := func(called, wantText string) {
		t.Helper()
		l.eventually(called+" is refused", func() error {
			var list corev1.EventList
			l.must(l.cluster.List(t.Context(), &list, client.InNamespace(a.namespace)))
			for _, e := range list.Items {
				if e.InvolvedObject.Name == called && strings.Contains(e.Message, wantText) {
					return nil
				}
			}
			return fmt.Errorf("no event says %q", wantText)
		})
	}
	refused("label", "changes only with a grant")
	refused("no-label", "changes only with a grant")
	for called := range thieves {
		if !strings.Contains(called, "label") {
			refused(called, "another namespace")
		}
	}

	l.must(l.cluster.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "bank", Namespace: l.namespace}}))
	l.eventually("bank is gone", func() error {
		if err := l.cluster.Get(t.Context(), key(l.namespace, "bank"), &corev1.Service{}); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("it is there"))
		}
		return nil
	})
	// Every edit reconciles the tenant's Service at once.
	for i := range 5 {
		for called := range thieves {
			s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: called, Namespace: a.namespace}}
			l.must(a.as.Patch(t.Context(), s, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"ports":[{"port":%d}]}}`, 81+i))))
		}
	}
	refused("by-name", "belongs to namespace "+l.namespace+", which has used it since")
	refused("by-address", "belongs to namespace "+l.namespace+", which has used it since")
	if out, _ := l.runPlan("-n", a.namespace, "by-name"); !strings.Contains(out, "belongs to namespace "+l.namespace) {
		t.Errorf("weir plan does not say who owns the public IP:\n%s", out)
	}
	l.must(l.cluster.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "bank", Namespace: l.namespace, Annotations: map[string]string{serviceAnnotation + "azure-pip-name": name(vip)}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: 80}}},
	}))
	if got := l.ingress("bank", 1)[0]; got != address {
		t.Errorf("bank has %s, and had %s", got, address)
	}
	// A second public IP of the same owner is added to the record.
	l.must(l.cluster.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "spare", Namespace: l.namespace, Annotations: map[string]string{serviceAnnotation + "azure-pip-name": name(spare)}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Port: 80}}},
	}))
	l.ingress("spare", 1)
	for called := range thieves {
		var s corev1.Service
		l.must(l.cluster.Get(t.Context(), key(a.namespace, called), &s))
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			t.Errorf("%s has %v", called, s.Status.LoadBalancer.Ingress)
		}
	}
	for id, want := range map[string]string{vip: "bank", spare: "spare"} {
		body, _ := l.emulator.Get(id)
		var ip struct {
			Properties struct {
				DNSSettings struct{ DomainNameLabel string }
			}
		}
		l.must(json.Unmarshal(body, &ip))
		if got := ip.Properties.DNSSettings.DomainNameLabel; got != want {
			t.Errorf("%s has the label %q, want %q", id, got, want)
		}
		if puts := l.emulator.Calls(func(c armemu.Call) bool {
			return c.Kind == armemu.KindPut && strings.EqualFold(c.Resource, id)
		}); len(puts) > 0 {
			t.Errorf("%s was written %d times", id, len(puts))
		}
	}
}
