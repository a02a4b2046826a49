// SPDX-License-Identifier: Apache-2.0

package services

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/service"
)

// sharers returns the demands for Private Link Services.
type sharers struct{ of *Reconciler }

// Sharers implements balancer.Cluster. A dry run, another class or invalid annotations freeze the Service's
// Private Link Service.
func (h sharers) Sharers(owners map[string]bool) map[string]privatelink.Sharer {
	all := map[string]privatelink.Sharer{}
	for _, obj := range h.of.view.Services.List() {
		s, ok := obj.(*corev1.Service)
		if !ok {
			continue
		}
		owner := strings.ToLower(service.Owner(string(s.UID)))
		if owners[owner] && s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			all[owner] = h.sharer(s)
		}
	}
	return all
}

func (h sharers) sharer(s *corev1.Service) privatelink.Sharer {
	is := view.ServiceLB(s)
	is.Object.PoolNames = serviceCluster{h.of}.PoolNames(is)
	spec, problems := service.Desired(is.Object, h.of.options.Settings)
	sharer := privatelink.SharerOf(is.Name, s.CreationTimestamp.Time, spec, append(is.Problems, problems...))
	sharer.Local, sharer.Recorded = is.Object.Local, view.OwnsLink(s)
	sharer.Groups = is.Record.LinkGroups
	sharer.Held = is.DryRun || !h.of.view.Serving.Ours(s)
	return sharer
}

// Connections returns the number of private endpoint connections by state.
func (h sharers) Connections() map[string]int {
	n := h.of.decide.States.Connections()
	return map[string]int{"pending": n.Pending, "approved": n.Approved, "rejected": n.Rejected, "other": n.Others}
}
