// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/skumigration/phase"
)

func (m *Migration) readSnapshot(ctx context.Context, j phase.Journal, services []phase.Service) (snapshot phase.Snapshot, err error) {
	err = withTimeout(ctx, func(ctx context.Context) error {
		snapshot, err = m.takeSnapshot(ctx, j, services)
		return err
	})
	return snapshot, err
}

// takeSnapshot takes a single list request if each Service has a Standard load balancer.
func (m *Migration) takeSnapshot(ctx context.Context, j phase.Journal, services []phase.Service) (phase.Snapshot, error) {
	var snapshot phase.Snapshot
	at := m.cfg.LoadBalancers[0]
	loadBalancers, err := m.cfg.Azure.ListLoadBalancers(ctx, at.SubscriptionID, at.ResourceGroup)
	if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale { // a missing resource group has none
		return snapshot, fmt.Errorf("load balancers of resource group %s: %w", at.ResourceGroup, err)
	}
	existing, basic := map[lb.LoadBalancerKey]bool{}, false
	for _, b := range loadBalancers {
		if !m.isManaged(b.ID) {
			snapshot.Others = append(snapshot.Others, b)
			continue
		}
		snapshot.LoadBalancers = append(snapshot.LoadBalancers, b)
		existing[b.ID.Key()], basic = true, basic || b.SKU == lb.Basic
	}
	missed := func(s phase.Service) bool {
		return !s.Skip && !existing[s.LoadBalancer.Key()] && snapshot.HasMissingFrontend(s)
	}
	if !basic && !slices.ContainsFunc(services, missed) && !j.IsOpen() {
		return snapshot, nil
	}
	m.readZones(ctx, &snapshot, j)
	if err := m.readPublicIPs(ctx, &snapshot, j, services); err != nil || !basic {
		return snapshot, err
	}
	return snapshot, m.readMachines(ctx, &snapshot, j.Members.ResourceIDs())
}

// readZones reads the zones of the regions where load balancers are created.
func (m *Migration) readZones(ctx context.Context, snapshot *phase.Snapshot, j phase.Journal) {
	if m.cfg.Zones == nil {
		return
	}
	locations := []string{m.cfg.Location}
	for _, b := range snapshot.LoadBalancers {
		locations = append(locations, b.Location)
	}
	for _, b := range j.LoadBalancers {
		locations = append(locations, b.Location)
	}
	snapshot.Zones = map[string]phase.RegionZones{}
	for _, at := range locations {
		if _, read := snapshot.Zones[at]; !read {
			snapshot.Zones[at] = m.cfg.Zones(ctx, at)
		}
	}
}

// readPublicIPs ignores a failure for a resource group that only a Service names, because a tenant
// chose that name.
func (m *Migration) readPublicIPs(ctx context.Context, snapshot *phase.Snapshot, j phase.Journal, services []phase.Service) error {
	needed, named := map[string]lb.ResourceID{}, map[string]lb.ResourceID{}
	add := func(to map[string]lb.ResourceID, text string) {
		if id, err := lb.ParseResourceID(text, lb.TypePublicIP); err == nil {
			to[groupKey(id)] = id
		}
	}
	needed[groupKey(m.cfg.PublicIPs)] = m.cfg.PublicIPs
	for _, b := range snapshot.LoadBalancers {
		for _, f := range b.Frontends {
			add(needed, f.PublicIP)
		}
	}
	for _, b := range j.LoadBalancers {
		for _, a := range b.Addresses {
			add(needed, a.PublicIP)
		}
	}
	for _, s := range services {
		for _, f := range s.Frontends {
			add(named, f.PublicIP)
		}
	}
	maps.Copy(named, needed)
	for _, key := range slices.Sorted(maps.Keys(named)) {
		group := named[key]
		ips, err := m.cfg.Azure.ListPublicIPs(ctx, group.SubscriptionID, group.ResourceGroup)
		_, must := needed[key]
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale && (must || f.Class != armerror.Terminal) {
			return fmt.Errorf("public IPs of resource group %s: %w", group.ResourceGroup, err)
		}
		snapshot.PublicIPs = append(snapshot.PublicIPs, ips...)
	}
	return nil
}

func groupKey(id lb.ResourceID) string {
	return strings.ToLower(id.SubscriptionID + "/" + id.ResourceGroup)
}

// readMachines reads the nodes' resource group, groups that a pool names, and recorded machines.
func (m *Migration) readMachines(ctx context.Context, snapshot *phase.Snapshot, before map[string]lb.ResourceID) error {
	groups, sets := map[string]lb.ResourceID{groupKey(m.cfg.Home): m.cfg.Home}, map[string]lb.ResourceID{}
	pools := map[string]bool{}
	for _, b := range snapshot.LoadBalancers {
		for _, p := range b.Pools {
			if b.SKU != lb.Basic {
				continue
			}
			pools[strings.ToLower(b.ID.String()+"/backendAddressPools/"+p.ID.Name)] = true
			for _, a := range p.Addresses {
				machine, of, err := lb.MachineOfInterface(a.Interface)
				switch {
				case err != nil:
				case machine == "":
					groups[groupKey(of)] = of
				default:
					if of, err := nic.ParseMachine("azure://" + machine); err == nil {
						groups[groupKey(of.ScaleSet)], sets[of.ScaleSet.Key()] = of.ScaleSet, of.ScaleSet
					}
				}
			}
		}
	}
	for key, id := range before {
		if groups[groupKey(id)] = id; id.Type == lb.TypeScaleSet {
			sets[key] = id
		}
	}
	in := func(c lb.InterfaceConfiguration) bool {
		return slices.ContainsFunc(c.IPConfigurations, func(ip lb.IPConfiguration) bool {
			return slices.ContainsFunc(ip.Pools, func(id string) bool { return pools[strings.ToLower(id)] })
		})
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		of := groups[key]
		interfaces, err := m.cfg.Azure.ListInterfaces(ctx, of.SubscriptionID, of.ResourceGroup)
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
			return fmt.Errorf("network interfaces of resource group %s: %w", of.ResourceGroup, err)
		}
		for _, i := range interfaces {
			if in(i.InterfaceConfiguration) || before[i.ID.Key()].Name != "" {
				snapshot.Interfaces = append(snapshot.Interfaces, i)
			}
		}
		list, err := m.cfg.Azure.ListScaleSets(ctx, of.SubscriptionID, of.ResourceGroup)
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
			return fmt.Errorf("scale sets of resource group %s: %w", of.ResourceGroup, err)
		}
		for _, s := range list {
			if slices.ContainsFunc(s.Interfaces, in) || m.inSync[s.ID.Key()] != nil {
				sets[s.ID.Key()] = s.ID
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		if err := m.readScaleSet(ctx, snapshot, sets[key]); err != nil {
			return err
		}
	}
	return nil
}

func (m *Migration) readScaleSet(ctx context.Context, snapshot *phase.Snapshot, id lb.ResourceID) error {
	shown, err := m.cfg.Azure.GetScaleSet(ctx, id)
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scale set %s: %w", id.Name, err)
	}
	if !shown.Uniform {
		snapshot.ScaleSets = append(snapshot.ScaleSets, phase.ScaleSet{ScaleSet: shown})
		return nil
	}
	instances, err := m.cfg.Azure.ListInstances(ctx, id)
	if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
		return fmt.Errorf("instances of scale set %s: %w", id.Name, err)
	}
	set := phase.ScaleSet{ScaleSet: shown, Instances: instances, Known: nic.ScaleSetState{UpToDate: m.inSync[id.Key()], UpgradeTimedOut: map[string]bool{}}}
	if m.waitingSince[id.Key()].IsZero() {
		m.waitingSince[id.Key()] = time.Now()
	}
	for _, i := range instances {
		set.Known.UpgradeTimedOut[i.ID] = time.Since(m.waitingSince[id.Key()]) >= upgradeTimeout
	}
	snapshot.ScaleSets = append(snapshot.ScaleSets, set)
	return nil
}
