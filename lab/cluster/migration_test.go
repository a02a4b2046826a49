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
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/test/shipped"
)

// toStandard enables the migration to Standard.
func toStandard(c *config.Config) { c.LoadBalancerSKU = "standard" }

// migrating reports whether a Service's status shows a migration.
func migrating(svc *corev1.Service) bool {
	c := meta.FindStatusCondition(svc.Status.Conditions, servicelb.TypeProgrammed)
	return c != nil && c.Reason == servicelb.ConditionReasonMigrating
}

// Basic load balancers become Standard and all addresses are kept, for every kind of machine and
// wherever Weir dies.
func TestFromBasicToStandard(t *testing.T) {
	for name, pools := range map[string]func(*config.Config){"addresses": func(*config.Config) {}, "interfaces": ofInterfaces} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{Role: shipped.MigrationRoles(), Configure: func(c *config.Config) { toStandard(c); pools(c) }}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				must(s.addBasic(0, 1, 2))
				s.Start()
				s.Pass(10 * time.Second)
				for _, b := range basics() {
					svc := &corev1.Service{}
					if must(s.people.Get(ctx, split(b.key), svc)); !migrating(svc) {
						t.Errorf("%s does not say that it migrates: %+v", b.key, svc.Status.Conditions)
					}
				}
				must(s.Settles(20 * time.Minute))
				must(s.migrated())
				s.Pass(settled)
				must(s.Rests(400))
			})
		})
	}
}

// A Service that cannot be deleted while its load balancer is Basic does not block the migration of
// others.
func TestWhoLeavesABasicLoadBalancerHoldsNobodyUp(t *testing.T) {
	for about, leave := range map[string]func(*Stage) error{
		"deleted": func(s *Stage) error { return errors.Join(s.DeleteService("shop/web"), s.DeleteService("shop/db")) },
		"of another type": func(s *Stage) error {
			return s.ChangeService("shop/web", func(svc *corev1.Service) {
				svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil
			})
		},
	} {
		t.Run(about, func(t *testing.T) {
			stage(t, Options{Role: shipped.MigrationRoles(), Configure: toStandard}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				must(s.addBasic(0, 1, 2))
				for _, b := range basics() {
					must(s.ChangeService(b.key, func(svc *corev1.Service) { svc.Finalizers = append(svc.Finalizers, view.ServiceFinalizer) }))
				}
				must(leave(s))
				s.Start()
				must(s.Settles(20 * time.Minute))
			})
		})
	}
}

// Weir is killed at any time, and Azure fails.
func TestFromBasicToStandardThroughFaults(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			stage(t, Options{Seed: seed, HideDeleted: seed%2 == 0, Configure: func(c *config.Config) { toStandard(c); ofInterfaces(c) }}, func(s *Stage) {
				for n := range 3 {
					must(s.AddNode(n))
				}
				must(s.addBasic(0, 1, 2))
				var faults []string
				for _, kind := range []string{"put", "delete", "list", "get"} {
					action := []string{"{status: 429, code: TooManyRequests, headers: {Retry-After: '7'}}", "{status: 500, code: InternalServerError}", "{drop: true}", "{drop: true, applied: true}"}[r.IntN(4)]
					faults = append(faults, fmt.Sprintf("{name: fault, match: {path: '**', kind: %s, probability: 0.2, maxMatches: 5}, action: %s}", kind, action))
				}
				must(s.AzureFaults(faults...))
				s.Start()
				for range 8 {
					s.Pass(time.Duration(r.IntN(20000)) * time.Millisecond)
					s.Kill(0)
				}
				s.EndFaults()
				must(s.Settles(30 * time.Minute))
				must(s.migrated())
			})
		})
	}
}

// deletes deletes a resource as a user.
func (s *Stage) deletes(id string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "https://management.azure.com"+id+"?api-version=2024-05-01", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+azureToken)
	resp, err := s.emu.Transport().Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// The internal load balancer is already deleted: its addresses are taken again, as in the Services'
// status, before others can get them.
func TestABasicLoadBalancerThatIsGoneAlready(t *testing.T) {
	stage(t, Options{Configure: toStandard}, func(s *Stage) {
		for n := range 3 {
			must(s.AddNode(n))
		}
		must(s.addBasic())
		must(s.deletes(network + "loadBalancers/" + clusterName + "-internal"))
		s.Pass(time.Minute)
		s.Start()
		must(s.Settles(20 * time.Minute))
		must(s.migrated())
	})
}

// The migration is not enabled, or disabled.
func TestBasicLoadBalancersThatStay(t *testing.T) {
	for name, configure := range map[string]func(*config.Config){
		"no SKU": func(*config.Config) {},
		"manual": func(c *config.Config) { toStandard(c); c.LoadBalancerMigration = "Manual" },
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, Options{Configure: configure}, func(s *Stage) {
				must(s.AddNode(0))
				must(s.addBasic(0))
				before := strings.Count(string(s.emu.Snapshot()), `"Basic"`)
				s.Start()
				s.Pass(10 * time.Minute)
				if after := strings.Count(string(s.emu.Snapshot()), `"Basic"`); after != before {
					must(fmt.Errorf("%d resources were Basic, and %d are", before, after))
				}
			})
		})
	}
}
