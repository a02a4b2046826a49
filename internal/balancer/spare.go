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

// spare ends the jobs that spare addresses and would take some away, before anything is
// written for them. The load balancer is read only if a status shows an address that its
// Service is not known to keep.
func (w *worker) spare(ctx context.Context, jobs []*job, inv *inventory) {
	var frontends []lb.Frontend
	var failed error
	read := false
	for _, j := range jobs {
		if !j.Spare || j.Desired == nil || inv.failed[j] != nil || !j.steps[0].leaves && len(unkept(j.Shown, w.knownFor(j, inv))) == 0 {
			continue
		}
		if !read {
			read = true
			frontends, failed = w.frontends(ctx)
		}
		if failed != nil {
			inv.failed[j] = failed
		} else if lost := w.lost(j, inv, frontends); len(lost) > 0 {
			inv.failed[j] = &RemovalError{Addresses: lost}
		}
	}
}

// frontends are those that Azure shows; none if there is no load balancer.
func (w *worker) frontends(ctx context.Context) ([]lb.Frontend, error) {
	if err := w.gate(ctx); err != nil {
		return nil, err
	}
	observed, err := w.cfg.Azure.GetLoadBalancer(ctx, w.id)
	if f := fault.From(err); f != nil && f.Class != fault.Stale {
		return nil, fmt.Errorf("load balancer %s: %w", w.id.Name, err)
	}
	return observed.Frontends, nil
}

// knownFor are the addresses that a job's Service will have, as far as they are known.
func (w *worker) knownFor(j *job, inv *inventory) []netip.Addr {
	var all []netip.Addr
	for i, f := range j.Desired.Frontends {
		switch {
		case f.PublicIP == nil && f.Frontend.Static:
			all = append(all, f.Frontend.PrivateIP)
		case f.PublicIP != nil && i < len(inv.of[j]):
			all = append(all, inv.known[inv.of[j][i]].Address)
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
// load balancer that is not the cluster's any more. What somebody else has taken away already
// is none of them.
func (w *worker) lost(j *job, inv *inventory, frontends []lb.Frontend) []netip.Addr {
	shown := unkept(j.Shown, w.knownFor(j, inv))
	if !j.steps[0].leaves && slices.ContainsFunc(j.Recorded, func(name string) bool { return !containsFold(w.cfg.names(), name) }) {
		return shown
	}
	var all []netip.Addr
	lose := func(a netip.Addr) {
		if a.IsValid() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	for _, f := range frontends {
		if !hasPrefixFold(f.Name, j.Owner) || keeps(j, f, inv) {
			continue
		}
		address := f.PrivateIP
		if f.PublicIP != "" {
			address = inv.known[keyOf(f.PublicIP)].Address
		}
		if lose(address); !address.IsValid() { // of a resource group that is not looked at
			for _, a := range shown {
				lose(a)
			}
		}
	}
	for _, ip := range inv.known {
		if slices.Contains(shown, ip.Address) && equalFold(madeFor(ip, w.cfg.ClusterName), j.Owner) && !wants(j.Desired, ip) {
			lose(ip.Address)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// keeps reports whether a Service has the address of one of its frontends after the step, here
// or where it moves.
func keeps(j *job, f lb.Frontend, inv *inventory) bool {
	moves := j.steps[0].leaves
	return slices.ContainsFunc(j.Desired.Frontends, func(want service.Frontend) bool {
		switch {
		case f.PublicIP != "":
			ip, known := inv.known[keyOf(f.PublicIP)]
			return known && wants(&service.Spec{Frontends: []service.Frontend{want}}, ip)
		case want.PublicIP != nil || !equalFold(want.Frontend.Subnet, f.Subnet):
			return false
		case want.Frontend.Static:
			return want.Frontend.PrivateIP == f.PrivateIP
		}
		return !moves && equalFold(want.Frontend.Name, f.Name)
	})
}

// keyOf is the key of a public IP by its id; one that is none has none.
func keyOf(id string) string {
	ip, err := lb.ParseResourceID(id, lb.TypePublicIP)
	if err != nil {
		return ""
	}
	return ip.Key()
}
