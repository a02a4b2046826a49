// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/rehearse/view"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// DryRunAnnotation on a Service keeps all that it has in Azure as it is. What would change
// is said instead.
const DryRunAnnotation = "weir.dev/dry-run"

// dryRun reports whether all that a Service has in Azure stays as it is. A value that nobody
// can read may mean that. One that is being deleted goes: to keep it would change nothing.
func dryRun(s *corev1.Service) bool {
	value := strings.TrimSpace(s.Annotations[DryRunAnnotation])
	return value != "" && !strings.EqualFold(value, "false") && s.DeletionTimestamp == nil
}

// IsDryRun reports whether people can read that all of a Service stays as it is.
func IsDryRun(s *corev1.Service) bool { return dryRun(s) && len(dryRunProblems(s)) == 0 }

// dryRunProblems says what is wrong with the annotation.
func dryRunProblems(s *corev1.Service) []service.Problem {
	if value := s.Annotations[DryRunAnnotation]; dryRun(s) && !strings.EqualFold(strings.TrimSpace(value), "true") {
		return []service.Problem{{Field: DryRunAnnotation, Value: value, Want: `"true" or "false"`}}
	}
	return nil
}

// serviceRehearser implements servicelb.Rehearser.
type serviceRehearser struct{ c *Cluster }

// Rehearse implements servicelb.Rehearser.
func (v serviceRehearser) Rehearse(ctx context.Context, s servicelb.Service, request func(context.Context, servicelb.Locator) (balancer.Request, bool, error)) (string, error) {
	r := v.c.balancing.Rehearse()
	req, holds, err := request(ctx, r)
	if err != nil {
		return "", err
	}
	if !holds {
		return view.Plan{}.Brief(), nil
	}
	refused, err := r.DryRun(ctx, req, func(pool service.Pool) (poolupdate.Desired, error) {
		return v.c.desiredOf(v.c.serviceObject(s), req.On, pool)
	}, v.c.opts.Draining != nil)
	switch {
	case err != nil:
		return "", err
	case refused != nil:
		return "dry run: the Service would be refused: " + textOf(refused), nil
	}
	return view.Of(r.Shadow.Differences(), nil).Brief(), nil
}

// desiredOf is what a pool of a Service has to hold, which may have no BackendPool yet.
func (c *Cluster) desiredOf(s *corev1.Service, on lb.LoadBalancerID, pool service.Pool) (poolupdate.Desired, error) {
	p := c.poolFor(s, on, pool)
	desired := poolupdate.Desired{}
	if is := c.snap.poolNamed(p.Namespace, p.Name); is != nil {
		p = is
		if e := c.statuses.Known(refOf(is)); e != nil {
			desired.Recorded = e.Recorded()
		}
	}
	set, err := c.snap.members(p)
	if err != nil {
		return desired, err
	}
	desired.Addresses, desired.Ours, desired.Alone = set.Addresses, c.pools.OursIn(p), c.snap.made(p)
	return desired, nil
}

// writePlanned puts what would change on the BackendPools that Weir made for a Service.
func (c *Cluster) writePlanned(ctx context.Context, name, text string) error {
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsByService, name) {
		if !c.snap.made(p) {
			continue
		}
		if err := c.pools.Rehearsed(ctx, p, text); err != nil {
			return err
		}
	}
	return nil
}
