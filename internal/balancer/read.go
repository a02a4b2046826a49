// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/sleep"
)

// snapshot is the input of a plan, without the jobs.
type snapshot struct {
	observed lb.LoadBalancer
	owners   []string
	// Foreign members by lower-case pool name, and the count of Weir's members that must leave before the load
	// balancer can be deleted.
	foreign             map[string][]string
	remainingInterfaces map[string]int
	conversions         []*conversion
	publicIPs           *publicip.Round
	leftPools           leftpool.Record
	links               *privatelinkround.Snapshot
}

func (l *loadBalancer) readSnapshot(ctx context.Context, jobs []*job, ips *publicip.Round) (snapshot, error) {
	observed, err := l.readOrTemplate(ctx, jobs)
	if err != nil {
		return snapshot{}, err
	}
	if l.cfg.Interfaces { // rules of the internal twin count for the machines too
		if err := l.readAll(ctx); err != nil {
			return snapshot{}, err
		}
	}
	for _, j := range jobs {
		if !j.isLeaving() {
			j.localSpec = j.Desired.RetainNames(service.PartsOf(j.Owner, observed, ips.FamilyOf))
		}
	}
	elsewhere := l.cache.ownersElsewhere(l.id.Name)
	owners := slices.DeleteFunc(l.cfg.Cluster.ServiceOwners(), func(owner string) bool { return elsewhere[owner] })
	foreign, err := l.foreignAddresses(ctx, observed, jobs)
	if err != nil {
		return snapshot{}, err
	}
	emptying, err := l.remainingInterfaces(ctx, observed, jobs, foreign)
	if err != nil {
		return snapshot{}, err
	}
	left, err := l.leftPools.LoadRecord(ctx)
	if err != nil && slices.ContainsFunc(jobs, func(j *job) bool { return j.Desired != nil && j.Desired.HasDedicatedPools() }) {
		return snapshot{}, err
	}
	converting, err := l.poolConversions(ctx, observed)
	return snapshot{observed, owners, foreign, emptying, converting, ips, left, l.links.NewSnapshot()}, err
}

// readOrTemplate returns the load balancer, or a template if it does not exist.
func (l *loadBalancer) readOrTemplate(ctx context.Context, jobs []*job) (lb.LoadBalancer, error) {
	observed, err := l.cfg.Azure.GetLoadBalancer(ctx, l.id)
	f := fault.FromError(err)
	switch {
	case f != nil && f.Class == fault.Stale:
		needed := slices.ContainsFunc(jobs, func(j *job) bool { return !j.isLeaving() })
		if needed && l.cfg.Location == "" {
			return lb.LoadBalancer{}, fmt.Errorf(`%s has to be made, and azure.json does not say where: set its key "location"`, l.name())
		}
		return lb.LoadBalancer{ID: l.id, Location: l.cfg.Location, SKU: lb.Standard, Tags: maps.Clone(l.cfg.Tags)}, nil
	case err != nil:
		return lb.LoadBalancer{}, err
	case observed.SKU != lb.Standard:
		return lb.LoadBalancer{}, fmt.Errorf("%s is of SKU %s: %w", l.name(), observed.SKU, publicip.ErrBasic)
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
			return &fault.Fault{Class: fault.Retriable, Code: fault.CodeGateClosed, Reason: "gate_closed", RetryAt: until, Err: errors.New("not sent: " + reason)}
		case sleep.For(ctx, time.Until(until)) != nil:
			return ctx.Err()
		}
	}
}

// foreignAddresses returns the foreign addresses in the pools that a plan could remove, by lower-case pool name.
func (l *loadBalancer) foreignAddresses(ctx context.Context, observed lb.LoadBalancer, jobs []*job) (map[string][]string, error) {
	found := map[string][]string{}
	for _, p := range observed.Pools {
		goes := containsFold(l.cfg.NodePools(), p.ID.Name) ||
			slices.ContainsFunc(jobs, func(j *job) bool { return containsFold(j.DedicatedPools, p.ID.Name) })
		if !goes || p.NIC || len(p.Addresses) == 0 { // network interfaces are counted separately
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
