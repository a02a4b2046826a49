// SPDX-License-Identifier: Apache-2.0

package services

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// sharers returns the demands for Private Link Services.
type sharers struct{ reconciler *Reconciler }

// FrontendServices implements loadbalancer.Cluster. A dry run, another class or invalid annotations freeze the Service's
// Private Link Service.
func (sh sharers) FrontendServices(owners map[string]bool) map[string]desired.FrontendService {
	services := map[string]desired.FrontendService{}
	for _, obj := range sh.reconciler.view.Services.List() {
		s, ok := obj.(*corev1.Service)
		if !ok {
			continue
		}
		owner := strings.ToLower(service.OwnerNameOf(string(s.UID)))
		if owners[owner] && s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			services[owner] = sh.newSharer(s)
		}
	}
	return services
}

func (sh sharers) newSharer(s *corev1.Service) desired.FrontendService {
	svc := cache.ServiceLB(s)
	svc.Object.PoolNames = serviceCluster{sh.reconciler}.PoolNames(svc)
	spec, problems := service.BuildSpec(svc.Object, sh.reconciler.options.Settings)
	sharer := desired.NewFrontendService(svc.Name, s.CreationTimestamp.Time, spec, append(svc.Problems, problems...))
	sharer.Local, sharer.IsRecordedOwner = svc.Object.Local, cache.OwnsLink(s)
	sharer.ResourceGroups = svc.Record.LinkGroups
	sharer.Frozen = svc.DryRun || !sh.reconciler.view.Serving.IsManaged(s)
	return sharer
}

// CountConnections returns the number of private endpoint connections by state.
func (sh sharers) CountConnections() map[string]int {
	n := sh.reconciler.decisions.States.CountConnections()
	return map[string]int{"pending": n.Pending, "approved": n.Approved, "rejected": n.Rejected, "other": n.Other}
}
