// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/skumigration/phase"
)

// LoadBalancers returns the IDs of all load balancers of the cluster, existing or not.
func LoadBalancers(r *Reconciler) []lb.LoadBalancerID {
	var ids []lb.LoadBalancerID
	for _, name := range r.deployer.Names() {
		ids = append(ids, r.deployer.ID(name))
	}
	return ids
}

// RecordMigrationEvent records an event on a Service.
func RecordMigrationEvent(r *Reconciler, service string, warning bool, reason, text string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if s := cache.Get[corev1.Service](r.view.Services, service); s != nil {
		r.cfg.Events.Add(s, kind, reason, humanize.FormatMessage(text, humanize.MaxMessage))
	}
}

// SetMigrationProgress sets the migration progress in the status of a Service until its next reconciliation.
func SetMigrationProgress(ctx context.Context, r *Reconciler, service, text string) error {
	s := cache.Get[corev1.Service](r.view.Services, service)
	if s == nil {
		return nil
	}
	svc := servicelb.Service{Name: service, UID: string(s.UID), Generation: s.Generation}
	return serviceStatusStore{r}.UpdateConditions(ctx, svc, servicelb.StatusUpdate{Conditions: []servicelb.StatusCondition{{Type: servicelb.TypeProgrammed, Reason: servicelb.ConditionReasonMigrating, Text: text}}})
}

// MigratedServices returns the Services that are served or must be cleaned up, with desired frontends and published
// addresses. An invalid Service still has its addresses.
func MigratedServices(r *Reconciler) []phase.Service {
	var services []phase.Service
	for _, s := range cache.List[corev1.Service](r.view.Services, cache.ServicesBalanced, "") {
		managed := r.view.Serving.IsManaged(s)
		if !managed && !r.view.Serving.NeedsCleanup(s) {
			continue
		}
		wants, _ := service.BuildSpec(cache.ServiceOf(s), r.options.Settings)
		on := service.LoadBalancerName(r.deployer.Names()[0], wants.Internal)
		if at := servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation]); len(at) > 0 {
			for _, name := range r.deployer.Names() { // a user who can edit the Service can edit its record
				if strings.EqualFold(name, at[0]) {
					on = name
				}
			}
		}
		of := phase.Service{Name: metadata.Key(s.Namespace, s.Name), LoadBalancer: r.deployer.ID(on), Addresses: cache.IngressAddresses(s),
			Owner: service.OwnerNameOf(string(s.UID)), Skip: !managed || cache.DryRun(s)}
		for _, f := range wants.Frontends {
			front := f.Frontend
			if f.PublicIP != nil {
				front.PublicIP = f.PublicIP.ID.String()
			}
			of.Frontends = append(of.Frontends, front)
		}
		of.Rules = len(wants.Rules)
		for _, rule := range wants.Rules {
			if !slices.ContainsFunc(wants.Pools, func(p service.Pool) bool { return p.Shared && p.Name == rule.Pool }) {
				of.DedicatedRules++
			}
		}
		services = append(services, of)
	}
	return services
}
