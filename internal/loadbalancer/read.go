// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

// snapshot is the input of a plan, without the jobs.
type snapshot struct {
	observed lb.LoadBalancer
	owners   []string
	// Foreign members by lower-case pool name, and the count of Weir's members that must leave before the load
	// balancer can be deleted.
	foreign             map[string][]string
	remainingInterfaces map[string]int
	// interfaces is true if nodes are members by their network interfaces.
	interfaces  bool
	conversions []*conversion
	publicIPs   *publicip.Round
	leftPools   LeftPoolRecord
	links       *privatelink.Snapshot
	// zones are the zones of new private frontends, by owner. zoneErrors are why a Service cannot have those that it
	// names.
	zones      map[string][]string
	zoneErrors map[string]error
}

func (l *loadBalancer) readSnapshot(ctx context.Context, jobs []*job, ips *publicip.Round) (snapshot, error) {
	observed, err := l.readOrTemplate(ctx, jobs)
	if err != nil {
		return snapshot{}, err
	}
	interfaces, err := l.readMemberKind(ctx, observed)
	if err != nil {
		return snapshot{}, err
	}
	for _, j := range jobs {
		if !j.isLeaving() {
			j.localSpec = j.Desired.RetainNames(service.PartsOf(j.Owner, observed, ips.FamilyOf)).SelectPools(l.cfg.Settings.Settings, interfaces, observed.Rules)
		}
	}
	elsewhere := l.cache.ownersElsewhere(l.id.Name)
	owners := slices.DeleteFunc(l.cfg.Cluster.ServiceOwners(), func(owner string) bool { return elsewhere[owner] })
	foreign, err := l.foreignAddresses(ctx, observed, jobs)
	if err != nil {
		return snapshot{}, err
	}
	emptying, err := l.remainingInterfaces(ctx, observed, jobs, interfaces, foreign)
	if err != nil {
		return snapshot{}, err
	}
	record, err := l.leftPools.LoadRecord(ctx)
	if err != nil && slices.ContainsFunc(jobs, func(j *job) bool { return j.Desired != nil && j.localSpec.HasDedicatedPools() }) {
		return snapshot{}, err
	}
	converting, err := l.poolConversions(ctx, observed)
	if err != nil {
		return snapshot{}, err
	}
	picked, rejected, err := l.pickZones(jobs, observed)
	return snapshot{observed, owners, foreign, emptying, interfaces, converting, ips, record, l.links.NewSnapshot(), picked, rejected}, err
}

// readMemberKind reports whether nodes are members of the load balancer's pools by their network interfaces. A new
// load balancer, which neither pools nor BackendPools show it for, has the kind of the cluster's others.
func (l *loadBalancer) readMemberKind(ctx context.Context, observed lb.LoadBalancer) (interfaces bool, err error) {
	kinds := append([]service.MemberKind{l.cfg.NodeMembers(observed.Pools)}, l.backendPoolKinds(l.id.Name)...)
	kinds = append(kinds, l.cfg.ImpliedMembers(observed))
	isNew := observed.Etag == "" && slices.Max(kinds) == service.UnknownMembers && !l.cfg.ConvertsPools
	if isNew || l.cfg.UsesInterfaces(kinds...) { // rules of the internal twin count for the machines too
		if err := l.readAll(ctx); err != nil {
			return false, err
		}
	}
	_, others := l.cache.members.list(l.id.Name)
	return l.cfg.UsesInterfaces(append(kinds, others...)...), nil
}

// readOrTemplate returns the load balancer, or a template if it does not exist.
func (l *loadBalancer) readOrTemplate(ctx context.Context, jobs []*job) (lb.LoadBalancer, error) {
	observed, err := l.cfg.Azure.GetLoadBalancer(ctx, l.id)
	f := armerror.FromError(err)
	switch {
	case f != nil && f.Class == armerror.Stale:
		needed := slices.ContainsFunc(jobs, func(j *job) bool { return !j.isLeaving() })
		if needed && l.cfg.Location == "" {
			return lb.LoadBalancer{}, fmt.Errorf(`%s has to be made, and azure.json does not say where: set its key "location"`, l.name())
		}
		return lb.LoadBalancer{ID: l.id, Location: l.cfg.Location, ExtendedLocation: l.cfg.ExtendedLocation, SKU: lb.Standard, Tags: maps.Clone(l.cfg.Tags)}, nil
	case err != nil:
		return lb.LoadBalancer{}, err
	case l.checkKind(observed) != nil:
		l.cache.recordState(observed) // no public IP is made for further Services
		return lb.LoadBalancer{}, l.checkKind(observed)
	case observed.Provisioning == lb.Updating:
		return lb.LoadBalancer{}, l.inProgress.RecordUpdating(l.name(), time.Now())
	}
	l.inProgress.RecordIdle(l.name())
	return observed, nil
}

func (l *loadBalancer) lockForWrite(ctx context.Context) (unlock func(), err error) {
	unlock, err = l.cfg.Workers.Lock(ctx, l.id)
	if err != nil {
		return nil, err
	}
	if err := l.checkGate(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// checkGate waits until a write may start. A closed throttle gate is an error, so that the load balancer is
// unlocked.
func (l *loadBalancer) checkGate(ctx context.Context) error {
	for {
		until, reason := l.cfg.Azure.Enter(l.id)
		switch {
		case until.IsZero():
			return nil
		case reason != "":
			return &armerror.Fault{Class: armerror.Retriable, Code: armerror.CodeGateClosed, Reason: "gate_closed", RetryAt: until, Err: errors.New("not sent: " + reason)}
		case ratelimit.Sleep(ctx, time.Until(until)) != nil:
			return ctx.Err()
		}
	}
}

// foreignAddresses returns the foreign addresses in the pools that a plan could remove, by lower-case pool name.
func (l *loadBalancer) foreignAddresses(ctx context.Context, observed lb.LoadBalancer, jobs []*job) (map[string][]string, error) {
	found := map[string][]string{}
	for _, p := range observed.Pools {
		isRemoved := containsFold(l.cfg.NodePools(), p.ID.Name) ||
			slices.ContainsFunc(jobs, func(j *job) bool { return containsFold(j.DedicatedPools, p.ID.Name) })
		if !isRemoved || p.NIC || len(p.Addresses) == 0 { // network interfaces are counted separately
			continue
		}
		p.ID.LoadBalancer = l.id
		others, err := l.cfg.Cluster.ForeignMembers(ctx, p)
		if err != nil {
			return nil, err
		}
		if len(others) > 0 {
			found[strings.ToLower(p.ID.Name)] = others
		}
	}
	return found, nil
}
