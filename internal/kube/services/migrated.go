// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/internal/words"
)

// LoadBalancers are all that are the cluster's, there or not.
func LoadBalancers(r *Reconciler) []lb.LoadBalancerID {
	var all []lb.LoadBalancerID
	for _, name := range r.balancers.Names() {
		all = append(all, r.balancers.ID(name))
	}
	return all
}

// TellMigrated has people hear of the Service of this namespace and name.
func TellMigrated(r *Reconciler, service string, warning bool, reason, text string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if s := view.Get[corev1.Service](r.view.Services, service); s != nil {
		r.cfg.Events.Add(s, kind, reason, words.Sentence(text, words.MaxMessage))
	}
}

// ShowMigrating keeps in the status of the Service of this namespace and name how far its load balancer is. The next
// look at the Service says what is so then.
func ShowMigrating(ctx context.Context, r *Reconciler, service, text string) error {
	s := view.Get[corev1.Service](r.view.Services, service)
	if s == nil {
		return nil
	}
	is := servicelb.Service{Name: service, UID: string(s.UID), Generation: s.Generation}
	return serviceLedger{r}.Conclude(ctx, is, servicelb.Conclusion{Verdicts: []servicelb.Verdict{{Type: servicelb.TypeProgrammed, Reason: servicelb.WhyMigrating, Text: text}}})
}

// Migrated returns the Services that are served, and those that leave, which Weir has to clean up after; each with
// the frontends that it wants and the addresses that its status shows. One that nobody can serve as it is shows its addresses all the same.
func Migrated(r *Reconciler) []migrate.Service {
	var all []migrate.Service
	for _, s := range view.List[corev1.Service](r.view.Services, view.ServicesBalanced, "") {
		ours := r.view.Serving.Ours(s)
		if !ours && !r.view.Serving.Held(s) {
			continue
		}
		wants, _ := service.Desired(view.ServiceOf(s), r.options.Settings)
		on := service.LoadBalancerName(r.balancers.Names()[0], wants.Internal)
		if at := servicelb.Names(s.Annotations[view.PlaceAnnotation]); len(at) > 0 {
			for _, ours := range r.balancers.Names() { // whoever may edit the Service may edit its record
				if strings.EqualFold(ours, at[0]) {
					on = ours
				}
			}
		}
		of := migrate.Service{Name: view.Key(s.Namespace, s.Name), Balancer: r.balancers.ID(on), Shown: view.Addresses(s),
			Owner: service.Owner(string(s.UID)), Idle: !ours || view.DryRun(s)}
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
				of.OwnRules++
			}
		}
		all = append(all, of)
	}
	return all
}
