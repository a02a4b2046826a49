// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// RemovalError says that a request which spares addresses would take some away. Nothing was
// changed for it.
type RemovalError struct {
	// Addresses are those that the Service would lose.
	Addresses []netip.Addr
}

// Error implements error.
func (e *RemovalError) Error() string {
	texts := make([]string, len(e.Addresses))
	for i, a := range e.Addresses {
		texts[i] = a.String()
	}
	return "it would lose " + strings.Join(texts, ", ")
}

// endLosing ends the jobs that spare addresses and would take some away, before anything is
// written for them. The load balancer is read only if a status shows an address that its
// Service is not known to keep.
func (l *loadBalancer) endLosing(ctx context.Context, jobs []*job, ips *publicip.Round) {
	var frontends []lb.Frontend
	var failed error
	read := false
	for _, j := range jobs {
		if !j.Spare || j.Desired == nil || j.ips.Err != nil || !j.leaves() && len(unkept(j.Shown, j.knownAddresses(ips))) == 0 {
			continue
		}
		if !read {
			read = true
			frontends, failed = l.frontends(ctx)
		}
		if failed != nil {
			j.ips.Err = failed
		} else if lost := j.lost(ips, frontends, l.cfg.names()); len(lost) > 0 {
			j.ips.Err = &RemovalError{Addresses: lost}
		}
	}
}

// frontends are those that Azure shows; none if there is no load balancer.
func (l *loadBalancer) frontends(ctx context.Context) ([]lb.Frontend, error) {
	if err := l.gate(ctx); err != nil {
		return nil, err
	}
	observed, err := l.cfg.Azure.GetLoadBalancer(ctx, l.id)
	if f := fault.From(err); f != nil && f.Class != fault.Stale {
		return nil, fmt.Errorf("load balancer %s: %w", l.id.Name, err)
	}
	return observed.Frontends, nil
}

// knownAddresses are the addresses that a job's Service will have, as far as they are known.
func (j *job) knownAddresses(ips *publicip.Round) []netip.Addr {
	var all []netip.Addr
	for i, f := range j.Desired.Frontends {
		switch ip, public := ips.Of(j.ips, i); {
		case f.PublicIP == nil && f.Frontend.Static:
			all = append(all, f.Frontend.PrivateIP)
		case public:
			all = append(all, ip.Address)
		}
	}
	return all
}

// unkept are the addresses that are shown, and not among those that will be there.
func unkept(shown, will []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(shown), func(a netip.Addr) bool { return slices.Contains(will, a) })
}

// lost are the addresses that a job's step takes away from its Service: those of its frontends
// here that it does not want, of public IPs that would be deleted, and all that it showed on a
// load balancer that is not the cluster's any more; names are those of the cluster's. What somebody else has taken away already
// is none of them.
func (j *job) lost(ips *publicip.Round, frontends []lb.Frontend, names []string) []netip.Addr {
	shown := unkept(j.Shown, j.knownAddresses(ips))
	if !j.leaves() && slices.ContainsFunc(j.Recorded, func(name string) bool { return !containsFold(names, name) }) {
		return shown
	}
	var all []netip.Addr
	lose := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	wanted := j.Desired.KeepNames(service.PartsOf(j.Owner, lb.LoadBalancer{Frontends: frontends}, ips.Family)).Frontends
	for _, f := range frontends {
		if !hasPrefixFold(f.Name, j.Owner) || keeps(j, f, wanted, ips) {
			continue
		}
		address := addressOf(f, ips)
		if lose(address); !address.IsValid() { // of a resource group that is not looked at
			for _, a := range shown {
				lose(a)
			}
		}
	}
	for _, a := range ips.Unwanted(j.ips) {
		if slices.Contains(shown, a) {
			lose(a)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// keeps reports whether a Service has the address of one of its frontends after the step, here
// or where it moves.
func keeps(j *job, f lb.Frontend, wanted []service.Frontend, ips *publicip.Round) bool {
	if f.PublicIP != "" {
		ip, known := ips.ByID(f.PublicIP)
		return known && ips.Gets(j.ips, ip)
	}
	return slices.ContainsFunc(wanted, func(want service.Frontend) bool {
		switch {
		case want.PublicIP != nil || !strings.EqualFold(want.Frontend.Subnet, f.Subnet):
			return false
		case want.Frontend.Static:
			return want.Frontend.PrivateIP == f.PrivateIP
		}
		return !j.leaves() && strings.EqualFold(want.Frontend.Name, f.Name)
	})
}
