// SPDX-License-Identifier: Apache-2.0

package phase

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
	// PhaseStatic: a Dynamic public IP would lose its address when free.
	PhaseStatic  Phase = "Static"
	PhaseDetach  Phase = "Detach"
	PhaseDelete  Phase = "Delete"
	PhaseUpgrade Phase = "Upgrade"
	PhaseCreate  Phase = "Make"
	PhaseVerify  Phase = "Verify"
	PhaseDone    Phase = "Done"
)

// Phases returns all phases in order.
func Phases() []Phase {
	return []Phase{PhaseStatic, PhaseDetach, PhaseDelete, PhaseUpgrade, PhaseCreate, PhaseVerify, PhaseDone}
}

// Steps may run in parallel, except those of one scale set. Afterwards Azure is read again.
type Steps struct {
	Phase      Phase
	PublicIPs  []lb.PublicIP
	Interfaces []lb.NetworkInterface
	ScaleSets  []ScaleSetSteps
	// Delete are load balancers as read; Put are new states.
	Delete, Put []lb.LoadBalancer
	// WaitReasons are reasons for unfinished work.
	WaitReasons []string
	// StopReasons are problems that a user must fix first.
	StopReasons []string
}

// ScaleSetSteps are the next writes of a scale set.
type ScaleSetSteps struct {
	ID lb.ResourceID
	nic.ScaleSetPlan
}

func (s *Steps) addWait(reason string) { s.WaitReasons = append(s.WaitReasons, reason) }
func (s *Steps) addStop(reason string) { s.StopReasons = append(s.StopReasons, reason) }

func (s *Steps) isEmpty() bool {
	return len(s.PublicIPs)+len(s.Interfaces)+len(s.ScaleSets)+len(s.Delete)+len(s.Put)+len(s.WaitReasons)+len(s.StopReasons) == 0
}

// NextSteps continues a journal from [BuildJournal]. A phase starts when the previous ones are complete, even
// if by hand.
func NextSteps(j Journal, snapshot Snapshot) Steps {
	for _, phase := range []struct {
		of   Phase
		adds func(*Steps, Journal, Snapshot)
	}{
		{PhaseStatic, (*Steps).addStatic},
		{PhaseDetach, (*Steps).addDetach},
		{PhaseDelete, (*Steps).addDelete},
		{PhaseUpgrade, (*Steps).addUpgrade},
		{PhaseCreate, (*Steps).addCreate},
		{PhaseVerify, (*Steps).addVerify},
	} {
		s := Steps{Phase: phase.of}
		if phase.adds(&s, j, snapshot); !s.isEmpty() {
			return s
		}
	}
	return Steps{Phase: PhaseDone}
}

// forEachPublicIP skips public IPs that are missing or being updated.
func (s *Steps) forEachPublicIP(j Journal, snapshot Snapshot, f func(lb.PublicIP)) {
	for _, id := range slices.Sorted(maps.Keys(j.publicIPIDs())) {
		ip, found := snapshot.findPublicIP(id)
		switch {
		case !found: // reported by Verify
		case ip.Provisioning == lb.Updating:
			s.addWait("public IP " + ip.ID.Name + " is Updating")
		default:
			f(ip)
		}
	}
}

// addStatic keeps addresses of free public IPs. A failed write is repeated, because its state may not
// be in effect.
func (s *Steps) addStatic(j Journal, snapshot Snapshot) {
	s.forEachPublicIP(j, snapshot, func(ip lb.PublicIP) {
		if !ip.Static || ip.Provisioning == lb.Failed {
			ip.Static = true
			s.PublicIPs = append(s.PublicIPs, ip)
		}
	})
}

// addDelete deletes Basic load balancers if nothing on them would be lost.
func (s *Steps) addDelete(j Journal, snapshot Snapshot) {
	for _, b := range snapshot.basicLoadBalancers() {
		if b.Provisioning == lb.Updating {
			s.addWait("load balancer " + b.ID.Name + " is Updating")
			continue
		}
		if s.checkSafeToDelete(b, j, snapshot) {
			s.Delete = append(s.Delete, b)
		}
	}
}

// checkSafeToDelete adds a stop for each loss.
func (s *Steps) checkSafeToDelete(b lb.LoadBalancer, j Journal, snapshot Snapshot) bool {
	before := len(s.StopReasons)
	for _, f := range b.Frontends {
		if reason := j.lossReason(b.ID, f, snapshot); reason != "" {
			s.addStop(fmt.Sprintf("frontend %s of load balancer %s %s", f.Name, b.ID.Name, reason))
		}
	}
	return len(s.StopReasons) == before
}

func (j Journal) lossReason(on lb.LoadBalancerID, f lb.Frontend, snapshot Snapshot) string {
	if f.PublicIP == "" {
		for _, b := range j.LoadBalancers {
			if b.ID.Key() == on.Key() && b.hasFrontend(f) {
				return ""
			}
		}
		return "has an address that is not on record"
	}
	switch ip, found := snapshot.findPublicIP(f.PublicIP); {
	case !found:
		return "has a public IP that cannot be read: " + f.PublicIP
	case !j.publicIPIDs()[strings.ToLower(f.PublicIP)]:
		return "has a public IP that is not on record: " + ip.ID.Name
	case !ip.Static:
		return "has a Dynamic public IP: " + ip.ID.Name
	}
	return ""
}

func (b LoadBalancer) hasFrontend(f lb.Frontend) bool {
	return slices.ContainsFunc(b.Addresses, func(a Address) bool {
		return strings.EqualFold(a.Frontend, f.Name) && a.IP == f.PrivateIP
	})
}

// addUpgrade makes public IPs Standard, which Azure accepts while they are free and Static. Those in
// use elsewhere are reported by [PhaseVerify]. Load balancers with only private frontends don't wait.
func (s *Steps) addUpgrade(j Journal, snapshot Snapshot) {
	s.forEachPublicIP(j, snapshot, func(ip lb.PublicIP) {
		switch on := j.deletedHolder(ip, snapshot); {
		case on != "":
			s.addWait("public IP " + ip.ID.Name + " is still shown with load balancer " + on + ", which is gone")
		case ip.SKU == lb.Basic && ip.UsedBy == "":
			ip.SKU = lb.Standard
			s.PublicIPs = append(s.PublicIPs, ip)
		}
	})
	if !s.isEmpty() { // otherwise the load balancers are next
		s.addCreateFor(j, snapshot, func(b LoadBalancer) bool {
			return !slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.PublicIP != "" })
		})
	}
}

// deletedHolder returns "" unless a public IP is still shown with a deleted load balancer: Azure updates
// references late.
func (j Journal) deletedHolder(ip lb.PublicIP, snapshot Snapshot) string {
	for _, b := range j.LoadBalancers {
		_, exists := snapshot.findLoadBalancer(b.ID)
		if !exists && strings.HasPrefix(strings.ToLower(ip.UsedBy), strings.ToLower(b.ID.String())+"/") {
			return b.ID.Name
		}
	}
	return ""
}

// addCreate creates frontends first, which reserves the addresses. Rules and pools follow from Services.
func (s *Steps) addCreate(j Journal, snapshot Snapshot) {
	s.addCreateFor(j, snapshot, func(LoadBalancer) bool { return true })
}

func (s *Steps) addCreateFor(j Journal, snapshot Snapshot, of func(LoadBalancer) bool) {
	for _, b := range j.LoadBalancers {
		if !of(b) {
			continue
		}
		next, exists := snapshot.findLoadBalancer(b.ID)
		if !exists {
			next = lb.LoadBalancer{ID: b.ID, Location: b.Location, SKU: lb.Standard, Tags: maps.Clone(b.Tags)}
		}
		if next.Provisioning == lb.Updating {
			s.addWait("load balancer " + b.ID.Name + " is Updating")
			continue
		}
		add := b.missingFrontends(next, snapshot)
		for _, a := range b.Addresses {
			if a.RejectReason != "" && !a.IsClaim && slices.ContainsFunc(add, func(f lb.Frontend) bool { return f.Name == a.Frontend }) {
				s.addWait(a.String() + " is still held, and is requested again: " + a.RejectReason)
			}
		}
		if len(add) == 0 && next.Provisioning != lb.Failed {
			continue
		}
		next.Frontends = append(slices.Clone(next.Frontends), add...)
		s.Put = append(s.Put, next)
	}
}

// missingFrontends puts rejected frontends last: those held by a deletion together, others alone, the least
// rejected first.
func (b LoadBalancer) missingFrontends(balancer lb.LoadBalancer, snapshot Snapshot) []lb.Frontend {
	var add, deleting, retry []lb.Frontend
	times := 0
	for _, a := range b.Addresses {
		f, missing := a.missingFrontend(balancer, snapshot, b.Location)
		switch {
		case !missing:
		case a.RejectReason == "":
			add = append(add, f)
		case a.HolderDeleting:
			deleting = append(deleting, f)
		case len(retry) == 0 || a.RejectCount < times:
			retry, times = []lb.Frontend{f}, a.RejectCount
		}
	}
	if len(add) == 0 {
		add = deleting
	}
	switch {
	case len(add) == 0:
		return retry
	case b.OneAtATime:
		return add[:1]
	}
	return add
}

// missingFrontend reports whether a load balancer lacks the address and can get it.
func (a Address) missingFrontend(balancer lb.LoadBalancer, snapshot Snapshot, location string) (lb.Frontend, bool) {
	if a.IsClaim || slices.ContainsFunc(balancer.Frontends, func(f lb.Frontend) bool {
		return strings.EqualFold(f.Name, a.Frontend) || a.PublicIP != "" && strings.EqualFold(f.PublicIP, a.PublicIP) ||
			a.PublicIP == "" && f.PrivateIP == a.IP && strings.EqualFold(f.Subnet, a.Subnet)
	}) {
		return lb.Frontend{}, false
	}
	f := lb.Frontend{Name: a.Frontend, Family: a.Family, PublicIP: a.PublicIP}
	if a.PublicIP == "" {
		f.Subnet, f.PrivateIP, f.Static = a.Subnet, a.IP, true
		f.Zones = snapshot.Zones[location].pick(a.Zones)
		return f, true
	}
	ip, found := snapshot.findPublicIP(a.PublicIP)
	return f, found && ip.UsedBy == "" && ip.SKU == lb.Standard
}
