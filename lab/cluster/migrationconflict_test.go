// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/skumigration/phase"
)

// Weir is killed after the deletion of a Basic load balancer was accepted, and Azure answers GET
// with 404 while the addresses are still in use. The next process waits for them.
func TestADeathWhileADeletionRuns(t *testing.T) {
	c := basicCluster{seed: 2, kind: machineKinds[0], nodes: 2, services: basicServices(), pools: useInterfaces}
	var calls []int
	runStage(t, c.options(), func(s *Stage) {
		failOn(c.build(s))
		for n, call := range c.migrate(s, 0, false) {
			if call.Method == http.MethodDelete {
				calls = append(calls, n+1)
			}
		}
	})
	if len(calls) != 2 {
		t.Fatalf("%d load balancers were deleted", len(calls))
	}
	for _, at := range calls {
		runStage(t, c.options(), func(s *Stage) {
			failOn(c.build(s))
			s.Sleep(time.Minute)
			s.Start()
			s.KillAtRequest(at, true)
			failOn(s.WaitInSync(40 * time.Minute))
			failOn(s.migratedAll(c.services))
			failOn(s.owesNothing())
		})
	}
}

func (s *Stage) owesNothing() error {
	if j, err := s.migrationJournal(); err != nil || !j.Done || j.HasClaims(phase.UserRequests{}) {
		return errors.Join(err, fmt.Errorf("the journal is %+v", j))
	}
	return nil
}

// Another system took the private address of a Service: all other Services are served, and that one
// gets no other address, even after a restart, until its own is free or a user agrees.
func TestAnAddressThatAnotherSystemHas(t *testing.T) {
	const held = "10.0.9.13" // of shop/db
	nic := network + "networkInterfaces/printer"
	for _, agrees := range []bool{false, true} {
		runStage(t, Options{Configure: enableMigration}, func(s *Stage) {
			for n := range 3 {
				failOn(s.AddNode(n))
			}
			failOn(s.addBasic())
			failOn(s.deleteResource(network + "loadBalancers/" + clusterName + "-internal"))
			s.Sleep(time.Minute)
			failOn(s.putResource(nic, map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": []any{map[string]any{
				"name": "ip", "properties": map[string]any{"subnet": idOf(vnetID + "/subnets/nodes"), "privateIPAllocationMethod": "Static", "privateIPAddress": held, "primary": true},
			}}}}))
			s.Start()
			s.Sleep(10 * time.Minute)
			failOn(s.servesAllBut("shop/db"))
			s.KillProcess(0)
			s.Sleep(10 * time.Minute)
			failOn(s.servesAllBut("shop/db"))
			if agrees {
				failOn(s.requestMigration(func(a *phase.UserRequests) {
					j, err := s.migrationJournal()
					failOn(err)
					*a, err = a.ReleaseAddress(j, netip.MustParseAddr(held), phase.UserRequest{By: "jane"})
					failOn(err)
				}))
			} else {
				failOn(s.deleteResource(nic))
			}
			s.Sleep(10 * time.Minute)
			got, err := s.addressNow("shop/db")
			if failOn(err); got == "" || (got == held) == agrees {
				failOn(fmt.Errorf("agreed %t: shop/db has %q", agrees, got))
			}
			if agrees {
				failOn(s.deleteResource(nic))
			}
			failOn(s.WaitInSync(40 * time.Minute))
		})
	}
}

// addressNow returns a Service's address in Azure, or "".
func (s *Stage) addressNow(key string) (string, error) {
	svc := &corev1.Service{}
	if err := s.userClient.Get(ctx, parseKey(key), svc); err != nil {
		return "", err
	}
	c, err := s.readAzure()
	return c.addressOf(frontendLabel(svc, corev1.IPv4Protocol)), err
}

// servesAllBut returns an error unless exactly one Service has no address and is not Programmed.
func (s *Stage) servesAllBut(waits string) error {
	for n, b := range basicServices() {
		svc := &corev1.Service{}
		if err := s.userClient.Get(ctx, parseKey(b.key), svc); err != nil {
			return err
		}
		got, err := s.addressNow(b.key)
		want := basicAddress(basicServices(), n, corev1.IPv4Protocol)
		if b.key == waits {
			want = ""
		}
		programmed := meta.IsStatusConditionTrue(svc.Status.Conditions, servicelb.TypeProgrammed)
		if err != nil || got != want || programmed != (want != "") {
			return errors.Join(err, fmt.Errorf("%s has %q, want %q; programmed %t, %+v", b.key, got, want, programmed, svc.Status.Conditions))
		}
	}
	return nil
}
