// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// Phase is a phase of a migration.
type Phase string

// The phases, in order.
const (
	// Static: a Dynamic public IP would lose its address when free.
	Static  Phase = "Static"
	Detach  Phase = "Detach"
	Delete  Phase = "Delete"
	Upgrade Phase = "Upgrade"
	Make    Phase = "Make"
	Verify  Phase = "Verify"
	Done    Phase = "Done"
)

// Phases returns all phases in order.
func Phases() []Phase { return []Phase{Static, Detach, Delete, Upgrade, Make, Verify, Done} }

// Steps may run in parallel, except those of one scale set. Afterwards Azure is read again.
type Steps struct {
	Phase      Phase
	PublicIPs  []lb.PublicIP
	Interfaces []lb.NetworkInterface
	ScaleSets  []SetSteps
	// Delete are load balancers as read; Put are new states.
	Delete, Put []lb.LoadBalancer
	// Waits are reasons for unfinished work.
	Waits []string
	// Stops are problems that a user must fix first.
	Stops []string
}

// SetSteps are the next writes of a scale set.
type SetSteps struct {
	ID lb.ResourceID
	nic.Steps
}

func (s *Steps) wait(reason string) { s.Waits = append(s.Waits, reason) }
func (s *Steps) stop(reason string) { s.Stops = append(s.Stops, reason) }

func (s *Steps) idle() bool {
	return len(s.PublicIPs)+len(s.Interfaces)+len(s.ScaleSets)+len(s.Delete)+len(s.Put)+len(s.Waits)+len(s.Stops) == 0
}

// Next continues a journal from [Stock]. A phase starts when the previous ones are complete, even
// if by hand.
func Next(j Journal, snapshot Seen) Steps {
	for _, phase := range []struct {
		of   Phase
		adds func(*Steps, Journal, Seen)
	}{
		{Static, (*Steps).static},
		{Detach, (*Steps).detach},
		{Delete, (*Steps).remove},
		{Upgrade, (*Steps).upgrade},
		{Make, (*Steps).put},
		{Verify, (*Steps).verify},
	} {
		s := Steps{Phase: phase.of}
		if phase.adds(&s, j, snapshot); !s.idle() {
			return s
		}
	}
	return Steps{Phase: Done}
}

// eachPublicIP skips public IPs that are missing or being updated.
func (s *Steps) eachPublicIP(j Journal, snapshot Seen, f func(lb.PublicIP)) {
	for _, id := range slices.Sorted(maps.Keys(j.publicIPs())) {
		ip, found := snapshot.publicIP(id)
		switch {
		case !found: // reported by Verify
		case ip.Provisioning == lb.Updating:
			s.wait("public IP " + ip.ID.Name + " is Updating")
		default:
			f(ip)
		}
	}
}

// static keeps addresses of free public IPs. A failed write is repeated, because its state may not
// be in effect.
func (s *Steps) static(j Journal, snapshot Seen) {
	s.eachPublicIP(j, snapshot, func(ip lb.PublicIP) {
		if !ip.Static || ip.Provisioning == lb.Failed {
			ip.Static = true
			s.PublicIPs = append(s.PublicIPs, ip)
		}
	})
}

// remove deletes Basic load balancers if nothing on them would be lost.
func (s *Steps) remove(j Journal, snapshot Seen) {
	for _, b := range snapshot.basic() {
		if b.Provisioning == lb.Updating {
			s.wait("load balancer " + b.ID.Name + " is Updating")
			continue
		}
		if s.safe(b, j, snapshot) {
			s.Delete = append(s.Delete, b)
		}
	}
}

// safe adds a stop for each loss.
func (s *Steps) safe(b lb.LoadBalancer, j Journal, snapshot Seen) bool {
	before := len(s.Stops)
	for _, f := range b.Frontends {
		if reason := j.loses(b.ID, f, snapshot); reason != "" {
			s.stop(fmt.Sprintf("frontend %s of load balancer %s %s", f.Name, b.ID.Name, reason))
		}
	}
	return len(s.Stops) == before
}

func (j Journal) loses(on lb.LoadBalancerID, f lb.Frontend, snapshot Seen) string {
	if f.PublicIP == "" {
		for _, b := range j.Balancers {
			if b.ID.Key() == on.Key() && b.names(f) {
				return ""
			}
		}
		return "has an address that is not on record"
	}
	switch ip, found := snapshot.publicIP(f.PublicIP); {
	case !found:
		return "has a public IP that cannot be read: " + f.PublicIP
	case !j.publicIPs()[strings.ToLower(f.PublicIP)]:
		return "has a public IP that is not on record: " + ip.ID.Name
	case !ip.Static:
		return "has a Dynamic public IP: " + ip.ID.Name
	}
	return ""
}

func (b Balancer) names(f lb.Frontend) bool {
	return slices.ContainsFunc(b.Addresses, func(a Address) bool {
		return strings.EqualFold(a.Frontend, f.Name) && a.IP == f.PrivateIP
	})
}

// upgrade makes public IPs Standard, which Azure accepts while they are free and Static. Those in
// use elsewhere are reported by [Verify]. Load balancers with only private frontends don't wait.
func (s *Steps) upgrade(j Journal, snapshot Seen) {
	s.eachPublicIP(j, snapshot, func(ip lb.PublicIP) {
		switch on := j.goneWith(ip, snapshot); {
		case on != "":
			s.wait("public IP " + ip.ID.Name + " is still shown with load balancer " + on + ", which is gone")
		case ip.SKU == lb.Basic && ip.UsedBy == "":
			ip.SKU = lb.Standard
			s.PublicIPs = append(s.PublicIPs, ip)
		}
	})
	if !s.idle() { // otherwise the load balancers are next
		s.putSome(j, snapshot, func(b Balancer) bool {
			return !slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.PublicIP != "" })
		})
	}
}

// goneWith returns "" unless a public IP is still shown with a deleted load balancer: Azure updates
// references late.
func (j Journal) goneWith(ip lb.PublicIP, snapshot Seen) string {
	for _, b := range j.Balancers {
		_, exists := snapshot.balancer(b.ID)
		if !exists && strings.HasPrefix(strings.ToLower(ip.UsedBy), strings.ToLower(b.ID.String())+"/") {
			return b.ID.Name
		}
	}
	return ""
}

// put creates frontends first, which reserves the addresses. Rules and pools follow from Services.
func (s *Steps) put(j Journal, snapshot Seen) {
	s.putSome(j, snapshot, func(Balancer) bool { return true })
}

func (s *Steps) putSome(j Journal, snapshot Seen, of func(Balancer) bool) {
	for _, b := range j.Balancers {
		if !of(b) {
			continue
		}
		next, exists := snapshot.balancer(b.ID)
		if !exists {
			next = lb.LoadBalancer{ID: b.ID, Location: b.Location, SKU: lb.Standard, Tags: maps.Clone(b.Tags)}
		}
		if next.Provisioning == lb.Updating {
			s.wait("load balancer " + b.ID.Name + " is Updating")
			continue
		}
		add := b.missing(next, snapshot)
		for _, a := range b.Addresses {
			if a.Refused != "" && !a.Owed && slices.ContainsFunc(add, func(f lb.Frontend) bool { return f.Name == a.Frontend }) {
				s.wait(a.String() + " is still held, and is asked for again: " + a.Refused)
			}
		}
		if len(add) == 0 && next.Provisioning != lb.Failed {
			continue
		}
		next.Frontends = append(slices.Clone(next.Frontends), add...)
		s.Put = append(s.Put, next)
	}
}

// missing puts rejected frontends last: those held by a deletion together, others alone, the least
// rejected first.
func (b Balancer) missing(has lb.LoadBalancer, snapshot Seen) []lb.Frontend {
	var add, deleting, retry []lb.Frontend
	times := 0
	for _, a := range b.Addresses {
		f, lacks := a.lacks(has, snapshot)
		switch {
		case !lacks:
		case a.Refused == "":
			add = append(add, f)
		case a.Held:
			deleting = append(deleting, f)
		case len(retry) == 0 || a.Times < times:
			retry, times = []lb.Frontend{f}, a.Times
		}
	}
	if len(add) == 0 {
		add = deleting
	}
	switch {
	case len(add) == 0:
		return retry
	case b.OneByOne:
		return add[:1]
	}
	return add
}

// lacks reports whether a load balancer lacks the address and can get it.
func (a Address) lacks(has lb.LoadBalancer, snapshot Seen) (lb.Frontend, bool) {
	if a.Owed || slices.ContainsFunc(has.Frontends, func(f lb.Frontend) bool {
		return strings.EqualFold(f.Name, a.Frontend) || a.PublicIP != "" && strings.EqualFold(f.PublicIP, a.PublicIP) ||
			a.PublicIP == "" && f.PrivateIP == a.IP && strings.EqualFold(f.Subnet, a.Subnet)
	}) {
		return lb.Frontend{}, false
	}
	f := lb.Frontend{Name: a.Frontend, Family: a.Family, PublicIP: a.PublicIP}
	if a.PublicIP == "" {
		f.Subnet, f.PrivateIP, f.Static = a.Subnet, a.IP, true
		return f, true
	}
	ip, found := snapshot.publicIP(a.PublicIP)
	return f, found && ip.UsedBy == "" && ip.SKU == lb.Standard
}
