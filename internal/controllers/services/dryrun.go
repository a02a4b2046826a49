// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	planview "weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/service"
)

// serviceDryRun implements servicelb.DryRunner.
type serviceDryRun struct{ r *Reconciler }

// DryRun implements servicelb.DryRunner.
func (d serviceDryRun) DryRun(ctx context.Context, s servicelb.Service, request func(context.Context, servicelb.Locator) (loadbalancer.Request, bool, error)) (string, error) {
	r := d.r.options.NewDryRun()
	req, ok, err := request(ctx, r)
	if err != nil {
		return "", err
	}
	if !ok {
		return planview.Report{}.FormatBrief(), nil
	}
	refused, err := r.DryRun(ctx, req, func(pool service.Pool) (diff.Desired, error) {
		return d.desiredOf(d.r.view.ServiceObject(s), req.On, pool)
	}, d.r.view.Draining != nil)
	switch {
	case err != nil:
		return "", err
	case refused != nil:
		return "dry run: the Service would be refused: " + humanize.FormatError(refused, time.Now()), nil
	}
	p := planview.NewReport(r.ListChanges(), nil)
	p.AddConversions(r.ListConversions())
	return p.FormatBrief(), nil
}

// desiredOf returns the desired members of a Service's pool, which may not have a BackendPool yet.
func (d serviceDryRun) desiredOf(s *corev1.Service, on lb.LoadBalancerID, pool service.Pool) (diff.Desired, error) {
	p := d.r.ownership.NewBackendPool(s, on, pool)
	desired := diff.Desired{}
	if pool := d.r.view.Pool(p.Namespace, p.Name); pool != nil {
		p = pool
		if e := d.r.ownership.Statuses.GetEntry(backendpool.RefOf(pool)); e != nil {
			desired.Record = e.MemberRecord()
		}
	}
	set, err := d.r.view.Members(p)
	if err != nil {
		return desired, err
	}
	desired.Addresses, desired.IsOwnAddress, desired.IsExclusive = set.Addresses, d.r.pools.ManagedAddresses(p), d.r.ownership.IsCreatedByWeir(p)
	desired.AddressOf = func(machine string) (netip.Addr, bool) { return d.r.view.AddressOf(machine, pool.Family) }
	return desired, nil
}

// RecordPlan implements servicelb.Store.
func (store serviceStatusStore) RecordPlan(ctx context.Context, s servicelb.Service, text string) error {
	for _, p := range cache.List[v1alpha1.BackendPool](store.view.Pools, cache.PoolsByService, s.Name) {
		if !store.ownership.IsCreatedByWeir(p) {
			continue
		}
		if err := store.pools.RecordPlan(ctx, p, text); err != nil {
			return err
		}
	}
	return nil
}
