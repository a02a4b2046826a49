// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

const (
	// formerAddressPeriod is how long the former load balancer serves after the status shows the new addresses: clients
	// learn them first.
	formerAddressPeriod = time.Minute
	// formerPublicPeriod applies to a public address: the Service is to be internal.
	formerPublicPeriod = time.Second
)

// MoveState is the last move of a Service to a load balancer with other addresses, while both serve. It is in memory: after
// a restart a move waits again.
type MoveState struct {
	on lb.LoadBalancerKey
	// probedAt is when Azure has probed the new members, leaveAt when the Service leaves its former load balancers; zero
	// until the new addresses are published.
	probedAt, leaveAt time.Time
}

// keepsFormer reports whether a request must not remove the Service from its former load balancers yet. recorded are the
// load balancers that may have parts of the Service. Two frontends cannot have one address, restrictions apply to one set
// of addresses, and a Private Link Service has one load balancer.
func (m *MoveState) keepsFormer(r loadbalancer.Request, recorded []string, now time.Time) bool {
	if r.Desired == nil || r.ProtectAddresses || len(r.StatusAddresses) == 0 || r.Desired.Access.IsLimited() || r.Desired.Access.DenyOthers || r.Desired.Link != nil {
		return false
	}
	former := formerNames(r, recorded)
	if len(former) == 0 || m.on == r.On.Key() && !m.leaveAt.IsZero() && !now.Before(m.leaveAt) {
		return false
	}
	leavesInternal, leavesPublic := slices.ContainsFunc(former, service.IsInternal), slices.ContainsFunc(former, isPublic)
	if !r.Desired.Internal {
		return !leavesPublic
	}
	return !leavesInternal || !slices.ContainsFunc(r.Desired.Frontends, func(f service.Frontend) bool { return f.Frontend.Static })
}

// formerNames returns the recorded load balancers that a request removes the Service from.
func formerNames(r loadbalancer.Request, recorded []string) (names []string) {
	for _, id := range r.RemoveFrom {
		if slices.ContainsFunc(recorded, func(name string) bool { return strings.EqualFold(name, id.Name) }) {
			names = append(names, id.Name)
		}
	}
	return names
}

// advance records that Azure has the new frontends, and returns when to request again.
func (m *MoveState) advance(r loadbalancer.Request, recorded []string, now time.Time) time.Time {
	switch {
	case m.on != r.On.Key():
		*m = MoveState{on: r.On.Key(), probedAt: now.Add(probeWait(r.Desired.Probes))}
	case m.leaveAt.IsZero() && !now.Before(m.probedAt):
		period := formerAddressPeriod
		if slices.ContainsFunc(formerNames(r, recorded), isPublic) {
			period = formerPublicPeriod
		}
		m.leaveAt = now.Add(period)
	}
	if m.leaveAt.IsZero() {
		return m.probedAt
	}
	return m.leaveAt
}

// publishes reports whether the new addresses serve.
func (m *MoveState) publishes() bool { return !m.leaveAt.IsZero() }

// probeWait is two intervals of the slowest probe, from a second to a minute.
func probeWait(probes []lb.Probe) time.Duration {
	wait := time.Second
	for _, p := range probes {
		wait = max(wait, 2*time.Duration(p.IntervalSeconds)*time.Second)
	}
	return min(wait, time.Minute)
}
