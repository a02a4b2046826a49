// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/test/shipped"
)

func enableMigration(c *config.Config) { c.LoadBalancerSKU = "standard" }

// isMigrating reports whether a Service's status shows a migration.
func isMigrating(svc *corev1.Service) bool {
	c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed)
	return c != nil && c.Reason == servicelb.ConditionReasonMigrating
}

// Basic load balancers become Standard and all addresses are kept, for every kind of machine and
// wherever Weir dies.
func TestFromBasicToStandard(t *testing.T) {
	for name, pools := range map[string]func(*config.Config){"addresses": useAddresses, "interfaces": useInterfaces} {
		t.Run(name, func(t *testing.T) {
			runStage(t, Options{Role: shipped.MigrationRoles(), Configure: func(c *config.Config) { enableMigration(c); pools(c) }}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				failOn(s.addBasic(0, 1, 2))
				s.Start()
				s.Sleep(10 * time.Second)
				for _, b := range basicServices() {
					svc := &corev1.Service{}
					if failOn(s.userClient.Get(ctx, parseKey(b.key), svc)); !isMigrating(svc) {
						t.Errorf("%s does not say that it migrates: %+v", b.key, svc.Status.Conditions)
					}
				}
				failOn(s.WaitInSync(20 * time.Minute))
				failOn(s.checkMigrated())
				s.Sleep(settleTime)
				failOn(s.CheckIdleHour(400))
			})
		})
	}
}

// A Service that cannot be deleted while its load balancer is Basic does not block the migration of
// others.
func TestServiceLeavingBasicLoadBalancerDelaysNoOther(t *testing.T) {
	for about, leave := range map[string]func(*Stage) error{
		"deleted": func(s *Stage) error { return errors.Join(s.DeleteService("shop/web"), s.DeleteService("shop/db")) },
		"of another type": func(s *Stage) error {
			return s.ChangeService("shop/web", func(svc *corev1.Service) {
				svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
			})
		},
	} {
		t.Run(about, func(t *testing.T) {
			runStage(t, Options{Role: shipped.MigrationRoles(), Configure: enableMigration}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				failOn(s.addBasic(0, 1, 2))
				for _, b := range basicServices() {
					failOn(s.ChangeService(b.key, func(svc *corev1.Service) { svc.Finalizers = append(svc.Finalizers, metadata.ServiceFinalizer) }))
				}
				failOn(leave(s))
				s.Start()
				failOn(s.WaitInSync(20 * time.Minute))
			})
		})
	}
}

// Weir is killed at any time, and Azure fails.
func TestFromBasicToStandardThroughFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			runStage(t, Options{Seed: seed, HideDeleted: seed%2 == 0, Configure: func(c *config.Config) { enableMigration(c); useInterfaces(c) }}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				failOn(s.addBasic(0, 1, 2))
				var faults []string
				for _, kind := range []string{"put", "delete", "list", "get"} {
					action := []string{"{status: 429, code: TooManyRequests, headers: {Retry-After: '7'}}", "{status: 500, code: InternalServerError}", "{drop: true}", "{drop: true, applied: true}"}[r.IntN(4)]
					faults = append(faults, fmt.Sprintf("{name: fault, match: {path: '**', kind: %s, probability: 0.2, maxMatches: 5}, action: %s}", kind, action))
				}
				failOn(s.AzureFaults(faults...))
				s.Start()
				for range 8 {
					s.Sleep(time.Duration(r.IntN(20000)) * time.Millisecond)
					s.KillProcess(0)
				}
				s.EndFaults()
				failOn(s.WaitInSync(30 * time.Minute))
				failOn(s.checkMigrated())
			})
		})
	}
}

func (s *Stage) deleteResource(id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "https://management.azure.com"+id+"?api-version=2024-05-01", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+azureToken)
	resp, err := s.emulator.Transport().Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// The internal load balancer is already deleted: its addresses are taken again, as in the Services'
// status, before others can get them.
func TestABasicLoadBalancerThatIsGoneAlready(t *testing.T) {
	runStage(t, Options{Configure: enableMigration}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		failOn(s.addBasic())
		failOn(s.deleteResource(network + "loadBalancers/" + clusterName + "-internal"))
		s.Sleep(time.Minute)
		s.Start()
		failOn(s.WaitInSync(20 * time.Minute))
		failOn(s.checkMigrated())
	})
}

// The migration is not enabled, or disabled.
func TestBasicLoadBalancersThatStay(t *testing.T) {
	for name, configure := range map[string]func(*config.Config){
		"no SKU": func(*config.Config) {},
		"manual": func(c *config.Config) { enableMigration(c); c.LoadBalancerMigration = "Manual" },
	} {
		t.Run(name, func(t *testing.T) {
			runStage(t, Options{Configure: configure}, func(s *Stage) {
				failOn(s.AddNode(0))
				failOn(s.addBasic(0))
				before := strings.Count(string(s.emulator.Snapshot()), `"Basic"`)
				s.Start()
				s.Sleep(10 * time.Minute)
				if after := strings.Count(string(s.emulator.Snapshot()), `"Basic"`); after != before {
					failOn(fmt.Errorf("%d resources were Basic, and %d are", before, after))
				}
			})
		})
	}
}
