// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/shipped"
)

const migratedAddress = "198.18.9.9"

// createBasic creates a Service and its Basic load balancer as cloud-provider-azure leaves it.
func (l *lab) createBasic() (publicIP string) {
	l.t.Helper()
	l.createLoadBalancerService("web", nil, l.node("n1", "10.0.0.1"))
	s := l.serviceOf("web")
	owner := service.OwnerNameOf(string(s.UID))
	publicIP = network + "/publicIPAddresses/" + l.namespace + "-" + owner
	l.must(l.emulator.Put(publicIP, fmt.Appendf(nil, `{"location":"eastus","sku":{"name":"Basic"},"tags":{"k8s-azure-cluster-name":%q,"k8s-azure-service":"%s/web"},
		"properties":{"publicIPAllocationMethod":"Dynamic","ipAddress":%q,"publicIPAddressVersion":"IPv4"}}`, l.namespace, l.namespace, migratedAddress)))
	l.must(l.emulator.Put(l.loadBalancer(), fmt.Appendf(nil, `{"location":"eastus","sku":{"name":"Basic"},"properties":{"backendAddressPools":[{"name":%q}],
		"frontendIPConfigurations":[{"name":%q,"properties":{"publicIPAddress":{"id":%q}}}]}}`, l.namespace, owner, publicIP)))
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: migratedAddress}}
	l.must(l.cluster.Status().Update(l.t.Context(), s))
	return publicIP
}

func (l *lab) serviceOf(name string) *corev1.Service {
	l.t.Helper()
	s := &corev1.Service{}
	l.must(l.cluster.Get(l.t.Context(), key(l.namespace, name), s))
	return s
}

// expectMigrate runs a weir migrate command as a user and requires exit code and output.
func (l *lab) expectMigrate(code int, wantText, command string, flags ...string) {
	l.t.Helper()
	l.must(l.tryMigrate(code, wantText, command, flags...))
}

// tryMigrate runs a weir migrate command as a user and returns an error unless exit code and output
// match.
func (l *lab) tryMigrate(code int, wantText, command string, flags ...string) error {
	l.t.Helper()
	args := []string{"migrate", command, "--kubeconfig", l.cluster.admin}
	if command == "status" || command == "run" {
		args = append(args, "--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", l.url, "--cluster-name", l.namespace)
	}
	of, err := process.RunToEnd(l.t.Context(), nil, filepath.Join(bin, "weir"), append(args, flags...)...)
	l.must(err)
	if of.Code != code || !strings.Contains(of.Stdout+of.Stderr, wantText) {
		return fmt.Errorf("weir migrate %s ends with %d, want %d, and %q:\n%s%s", command, of.Code, code, wantText, of.Stdout, of.Stderr)
	}
	return nil
}

// startOnRequest starts a Weir that migrates on request only, and waits for its record.
func (l *lab) startOnRequest() *program {
	l.t.Helper()
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","location":"eastus","loadBalancerSku":"standard","loadBalancerMigration":"manual"}`)
	p := l.controller("--cluster-name", l.namespace)
	l.eventually("the record", func() error {
		if name, _ := l.recordedName(); name != l.namespace {
			return errors.New("there is none")
		}
		return nil
	})
	return p
}

// With migration on request, nothing happens until a user requests it, or while a user stopped it.
// Then the leader steps down, the next one migrates, and the address is kept.
func TestRequestedMigration(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.MigrationRoles()})
	publicIP := l.createBasic()
	current := func(sku string) error {
		if raw, _ := l.emulator.Get(publicIP); !strings.Contains(string(raw), `"`+sku+`"`) || !strings.Contains(string(raw), migratedAddress) {
			return errors.New("the public IP is " + string(raw))
		}
		return nil
	}
	single := l.startOnRequest()
	two := l.controller("--cluster-name", l.namespace)
	l.waitStandby(two)
	l.expectMigrate(2, "Not begun: ", "status")
	l.expectMigrate(0, "Stop requested by ", "stop", "--why", "the shop is open")
	l.expectMigrate(4, ": the shop is open\n", "status")
	l.expectMigrate(4, "Stopped by ", "run")
	l.expectMigrate(0, "Canceled the stop that was requested by ", "resume")
	l.expectMigrate(0, "No stop was requested.", "resume")
	l.must(current("Basic"))
	l.expectMigrate(0, "Done: 1 address is where it was.", "run", "--wait", "--timeout", "10m")
	l.must(current("Standard"))
	if code := single.ExitCode(); code != 0 {
		t.Errorf("who has given up the lead ends with %d", code)
	}
	l.expectMigrate(0, migratedAddress+" (public IP ", "status", "-o", "text")
	for _, reason := range []string{"MigratingLoadBalancer", "MigratedLoadBalancer"} {
		l.eventually("event "+reason, func() error {
			var list corev1.EventList
			l.must(l.cluster.List(l.t.Context(), &list, client.InNamespace(l.namespace)))
			for _, e := range list.Items {
				if e.Reason == reason && e.InvolvedObject.Name == "web" && strings.Contains(e.Message, migratedAddress) {
					return nil
				}
			}
			return fmt.Errorf("there is none of Service web: %d others", len(list.Items))
		})
	}
	l.becomes(l.namespace+"-web", "10.0.0.1")
	if ip := l.ingress("web", 1)[0]; ip != migratedAddress {
		t.Errorf("the Service shows %s", ip)
	}
}
