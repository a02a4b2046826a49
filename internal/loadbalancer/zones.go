// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/zones"
)

// errZonesUnread means that a new private frontend needs the zones of the region: they are read while the load balancer is not
// locked, because Azure may not answer.
var errZonesUnread = errors.New("the zones of the region were not read yet")

// pickZones returns the zones of the jobs' new private frontends by owner, and why a job cannot have its zones. Only a
// new frontend needs the zones of the region. An edge zone has no availability zones.
func (l *loadBalancer) pickZones(jobs []*job, observed lb.LoadBalancer) (picked map[string][]string, rejected map[string]error, outage error) {
	picked, rejected = map[string][]string{}, map[string]error{}
	for _, j := range jobs {
		if j.isLeaving() || !j.Desired.Internal {
			continue
		}
		for _, f := range j.localSpec.Frontends {
			named := service.ZoneChoice(f.Frontend.Zones)
			frontend, exists := plan.FrontendAt(observed, j.Owner, plan.PinAddress(f.Frontend, j.Owner, j.Service, j.localSpec.Rules, observed, l.cfg.ReservedAddress))
			var err error
			switch {
			case observed.ExtendedLocation != "":
				err = named.CheckEdgeZone(observed.ExtendedLocation)
			case exists:
				err = named.CheckExisting("frontend "+frontend.Name, frontend.Zones)
			case !l.hasLoadedZones && l.cfg.Zones.NeedsRead():
				return nil, nil, errZonesUnread
			default:
				picked[j.Owner], err = l.cfg.Zones.CachedRegion(observed.Location).Pick(named, l.cfg.DefaultZones)
			}
			if _, ok := errors.AsType[*zones.OutageError](err); ok {
				return nil, nil, err
			}
			if err != nil {
				rejected[j.Owner] = err
			}
		}
	}
	return picked, rejected, nil
}

// edgeZoneOf returns the edge zone of a load balancer, or the one that it will have: its public IPs must be there, too.
func (b *LoadBalancers) edgeZoneOf(ctx context.Context, id lb.LoadBalancerID) (string, error) {
	if b.cfg.ExtendedLocation != "" {
		if err := b.ensureState(ctx, id); err != nil {
			return "", err
		}
	}
	b.cache.mu.Lock()
	observed, _ := b.cache.observedLocked(id.Name)
	b.cache.mu.Unlock()
	if observed.Etag == "" {
		return b.cfg.ExtendedLocation, nil
	}
	return observed.ExtendedLocation, nil
}
