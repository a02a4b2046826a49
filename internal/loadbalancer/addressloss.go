// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// AddressLossError means that a request which protects addresses would remove some. Nothing was changed.
type AddressLossError struct {
	Addresses []netip.Addr
}

// Error implements error.
func (e *AddressLossError) Error() string {
	texts := make([]string, len(e.Addresses))
	for i, a := range e.Addresses {
		texts[i] = a.String()
	}
	return "it would lose " + strings.Join(texts, ", ")
}

// rejectAddressLoss fails jobs that protect addresses and would lose some, before any write. It reads the load balancer
// only if a status shows an address that the Service is not known to retain.
func (l *loadBalancer) rejectAddressLoss(ctx context.Context, jobs []*job, ips *publicip.Round) {
	var frontends []lb.Frontend
	var failed error
	read := false
	for _, j := range jobs {
		if !j.ProtectAddresses || j.Desired == nil || j.ipRequest.Err != nil || !j.isLeaving() && len(missingAddresses(j.StatusAddresses, j.knownAddresses(ips))) == 0 {
			continue
		}
		if !read {
			read = true
			frontends, failed = l.readFrontends(ctx)
		}
		if failed != nil {
			j.ipRequest.Err = failed
		} else if lost := j.lostAddresses(ips, frontends, l.cfg.loadBalancerNames()); len(lost) > 0 {
			j.ipRequest.Err = &AddressLossError{Addresses: lost}
		}
	}
}

func (l *loadBalancer) readFrontends(ctx context.Context) ([]lb.Frontend, error) {
	if err := l.checkGate(ctx); err != nil {
		return nil, err
	}
	observed, err := l.cfg.Azure.GetLoadBalancer(ctx, l.id)
	if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
		return nil, fmt.Errorf("load balancer %s: %w", l.id.Name, err)
	}
	return observed.Frontends, nil
}

func (j *job) knownAddresses(ips *publicip.Round) []netip.Addr {
	var addresses []netip.Addr
	for i, f := range j.Desired.Frontends {
		switch ip, public := ips.PublicIPOf(j.ipRequest, i); {
		case f.PublicIP == nil && f.Frontend.Static:
			addresses = append(addresses, f.Frontend.PrivateIP)
		case public:
			addresses = append(addresses, ip.Address)
		}
	}
	return addresses
}

func missingAddresses(observed, next []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(observed), func(a netip.Addr) bool { return slices.Contains(next, a) })
}

// lostAddresses returns the addresses that a job's step removes: unwanted frontends, public IPs to delete, and all shown
// addresses if the load balancer is not in names. Addresses already removed by another controller do not count.
func (j *job) lostAddresses(ips *publicip.Round, frontends []lb.Frontend, names []string) []netip.Addr {
	observed := missingAddresses(j.StatusAddresses, j.knownAddresses(ips))
	if !j.isLeaving() && slices.ContainsFunc(j.LoadBalancers, func(name string) bool { return !containsFold(names, name) }) {
		return observed
	}
	var addresses []netip.Addr
	lose := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	wanted := j.Desired.RetainNames(service.PartsOf(j.Owner, lb.LoadBalancer{Frontends: frontends}, ips.FamilyOf)).Frontends
	for _, f := range frontends {
		if !hasPrefixFold(f.Name, j.Owner) || hasAddressAfter(j, f, wanted, ips) {
			continue
		}
		address := addressOf(f, ips)
		if lose(address); !address.IsValid() { // in a resource group that was not read
			for _, a := range observed {
				lose(a)
			}
		}
	}
	for _, a := range ips.UnwantedAddresses(j.ipRequest) {
		if slices.Contains(observed, a) {
			lose(a)
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses
}

// hasAddressAfter reports whether a Service retains the address of a frontend after the step, here or where it moves.
func hasAddressAfter(j *job, f lb.Frontend, wanted []service.Frontend, ips *publicip.Round) bool {
	if f.PublicIP != "" {
		ip, known := ips.ByID(f.PublicIP)
		return known && ips.WillUse(j.ipRequest, ip)
	}
	return slices.ContainsFunc(wanted, func(want service.Frontend) bool {
		switch {
		case want.PublicIP != nil || !strings.EqualFold(want.Frontend.Subnet, f.Subnet):
			return false
		case want.Frontend.Static:
			return want.Frontend.PrivateIP == f.PrivateIP
		}
		return !j.isLeaving() && strings.EqualFold(want.Frontend.Name, f.Name)
	})
}
