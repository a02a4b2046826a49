// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Action is the kind of a step.
type Action string

// The actions. [Level] is in sync; [Wait] waits for Azure, [Hold] for users to fix reported
// problems, [Refuse] for users to follow the reason. These four write nothing.
const (
	Level      Action = "level"
	Create     Action = "create"
	Change     Action = "change"
	OpenSubnet Action = "open the subnet"
	Disconnect Action = "disconnect"
	Delete     Action = "delete"
	Wait       Action = "wait"
	Hold       Action = "hold"
	Refuse     Action = "refuse"
)

// Step is idempotent.
type Step struct {
	Do Action
	// Service is the new state, or the current one for a deletion.
	Service lb.PrivateLinkService
	// Connection is removed by [Disconnect].
	Connection lb.PrivateEndpointConnection
	// Subnet is written by [OpenSubnet].
	Subnet lb.Subnet
	// Why is one sentence: the difference, the wait, or the problem and its fix.
	Why string
}

// Writes reports whether the step writes to Azure.
func (s Step) Writes() bool {
	return slices.Contains([]Action{Create, Change, OpenSubnet, Disconnect, Delete}, s.Do)
}

// Next removes unwanted Private Link Services first, connections before them, then creates or
// changes the wanted one. links are all of the cluster's resource groups; subnet is the one named
// by SubnetOf, or nil if not read.
func Next(f Frontend, v Verdict, links []lb.PrivateLinkService, subnet *lb.Subnet, settings Settings) Step {
	if v.Holds {
		return Step{Do: Hold}
	}
	is := on(f, links)
	if v.Want != nil {
		if reason := kept(f, v, is, links, settings); reason != "" {
			return Step{Do: Refuse, Why: reason}
		}
	}
	for _, p := range is {
		if foreign(p, settings) || v.Want != nil && p.ID.Key() == v.Want.ID.Key() {
			continue
		}
		return remove(p, v.Want)
	}
	if v.Want == nil {
		return Step{Do: Level}
	}
	at, found := byID(links, v.Want.ID)
	switch {
	case !found:
		return write(Step{Do: Create, Service: *v.Want, Why: "private link service " + at.ID.Name + " is to publish frontend " + f.Name}, lb.PrivateLinkService{}, subnet, settings)
	case busy(at.Provisioning):
		return wait("Azure is at work on private link service %s (%s)", at.ID.Name, at.Provisioning)
	case len(at.Frontends) > 0 && !publishes(at, f.ID):
		return wait("private link service %s has yet to go from %s", at.ID.Name, strings.Join(at.Frontends, ", "))
	}
	next, differs := changed(at, *v.Want)
	if len(differs) == 0 {
		return Step{Do: Level, Service: at}
	}
	return write(Step{Do: Change, Service: next, Why: "private link service " + at.ID.Name + ": " + strings.Join(differs, "; ")}, at, subnet, settings)
}

// kept returns "" if nothing blocks the wanted Private Link Service.
func kept(f Frontend, v Verdict, is, links []lb.PrivateLinkService, settings Settings) string {
	at, found := byID(links, v.Want.ID)
	switch {
	case found && foreign(at, settings):
		return fmt.Sprintf("private link service %s is there already, and by its tags (%s, %s) nobody of this cluster made it: name another in %s, or tag or delete that one", at.ID.Name, service.TagLinkOwner, service.TagCluster, service.PLSName)
	case found && len(at.Frontends) > 0 && !publishes(at, f.ID) && OwnerOf(at) != v.Owner:
		return fmt.Sprintf("private link service %s is that of Service %s, on another frontend: name another in %s", at.ID.Name, OwnerOf(at), service.PLSName)
	}
	for _, p := range is {
		switch {
		case foreign(p, settings):
			return fmt.Sprintf("frontend %s has private link service %s, which by its tags (%s, %s) nobody of this cluster made: take it off the frontend, or remove %s", f.Name, p.ID, service.TagLinkOwner, service.TagCluster, service.PLSCreate)
		case p.ID.Key() != v.Want.ID.Key() && len(p.Connections) > 0 && p.Provisioning != lb.Deleting:
			return fmt.Sprintf("private link service %s would be replaced by %s, and its private endpoints would lose their connections (%s): take the name back, or set %s to \"false\" first, which removes them", p.ID.Name, v.Want.ID.Name, Connections(p), service.PLSCreate)
		}
	}
	return ""
}

// remove deletes the connections one by one, then the Private Link Service.
func remove(p lb.PrivateLinkService, successor *lb.PrivateLinkService) Step {
	if p.Provisioning == lb.Deleting {
		return wait("Azure is at work on private link service %s (%s)", p.ID.Name, p.Provisioning)
	}
	connections := slices.SortedFunc(slices.Values(p.Connections), func(a, b lb.PrivateEndpointConnection) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range connections {
		if busy(c.Provisioning) {
			return wait("private link service %s has yet to lose connection %s of private endpoint %s (%s)", p.ID.Name, c.Name, c.Endpoint, c.Provisioning)
		}
	}
	if busy(p.Provisioning) {
		return wait("Azure is at work on private link service %s (%s)", p.ID.Name, p.Provisioning)
	}
	if len(connections) > 0 {
		c := connections[0]
		return Step{Do: Disconnect, Service: p, Connection: c, Why: fmt.Sprintf("connection %s of private endpoint %s goes before private link service %s does (%d left after it)", c.Name, c.Endpoint, p.ID.Name, len(connections)-1)}
	}
	reason := "nobody asks for private link service " + p.ID.Name
	if successor != nil {
		reason = "private link service " + successor.ID.Name + " takes the place of " + p.ID.Name
	}
	return Step{Do: Delete, Service: p, Why: reason}
}

// write opens the subnet first if necessary.
func write(step Step, is lb.PrivateLinkService, subnet *lb.Subnet, settings Settings) Step {
	if a := outside(step.Service.NAT, subnet); a.IsValid() {
		return refusal("%s names %s, which is not of subnet %s", service.PLSAddresses, a, subnet.Name)
	}
	enters := slices.ContainsFunc(step.Service.NAT, func(n lb.NATAddress) bool {
		return !slices.ContainsFunc(is.NAT, func(have lb.NATAddress) bool { return strings.EqualFold(have.Subnet, n.Subnet) })
	})
	switch {
	case subnet == nil || !subnet.LinkPolicies || !enters:
		return step
	case busy(subnet.Provisioning):
		return wait("Azure is at work on subnet %s (%s)", subnet.Name, subnet.Provisioning)
	case settings.OpensSubnets:
		next := *subnet
		next.LinkPolicies = false
		return Step{Do: OpenSubnet, Subnet: next, Why: "network policies of subnet " + subnet.Name + " keep private link services out"}
	}
	n := subnet.Network
	return refusal("network policies of subnet %s keep private link services out: az network vnet subnet update --subscription %s --resource-group %s --vnet-name %s --name %s --private-link-service-network-policies Disabled", subnet.Name, n.SubscriptionID, n.ResourceGroup, n.Name, subnet.Name)
}

// SubnetOf returns the ARM id of the subnet to read before [Next], or "".
func SubnetOf(v Verdict, links []lb.PrivateLinkService) string {
	if v.Want == nil {
		return ""
	}
	is, _ := byID(links, v.Want.ID)
	if sameNAT(is.NAT, v.Want.NAT) {
		return ""
	}
	return v.Want.NAT[0].Subnet
}

// Holding describes what publishes a frontend and so blocks its deletion, or "".
func Holding(f Frontend, links []lb.PrivateLinkService) string {
	var texts []string
	for _, p := range on(f, links) {
		texts = append(texts, fmt.Sprintf("private link service %s publishes frontend %s (%s)", p.ID, f.Name, Connections(p)))
	}
	return strings.Join(texts, "; ")
}

func changed(is, want lb.PrivateLinkService) (next lb.PrivateLinkService, differs []string) {
	next = is
	differ := func(what, has, wants string) {
		differs = append(differs, fmt.Sprintf("%s %s, Weir wants %s", what, cmp.Or(has, "none"), cmp.Or(wants, "none")))
	}
	if len(is.Frontends) == 0 {
		next.Frontends = want.Frontends
		differ("frontends", "", strings.Join(want.Frontends, " "))
	}
	if !sameNAT(is.NAT, want.NAT) {
		next.NAT = nextNAT(is.NAT, want.NAT)
		differ("addresses", showNAT(is.NAT), showNAT(want.NAT))
	}
	if is.ProxyProtocol != want.ProxyProtocol {
		next.ProxyProtocol = want.ProxyProtocol
		differ("PROXY protocol", strconv.FormatBool(is.ProxyProtocol), strconv.FormatBool(want.ProxyProtocol))
	}
	for _, list := range []struct {
		what     string
		is, want []string
		next     *[]string
	}{
		{"FQDNs", is.FQDNs, want.FQDNs, &next.FQDNs}, {"visibility", is.Visibility, want.Visibility, &next.Visibility},
		{"auto-approval", is.AutoApproval, want.AutoApproval, &next.AutoApproval},
	} {
		if has, wants := folded(list.is), folded(list.want); has != wants {
			*list.next = list.want
			differ(list.what, has, wants)
		}
	}
	next.Tags = maps.Clone(is.Tags)
	if next.Tags == nil {
		next.Tags = map[string]string{}
	}
	wanted := maps.Clone(want.Tags)
	if OwnerOf(is) == want.Tags[service.TagLinkOwner] {
		delete(wanted, service.TagLinkOwner) // the old tag name counts, too
	} else {
		lb.UnsetTag(next.Tags, service.TagLinkOwnerBefore)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if has := lb.Tag(is.Tags, name); has != wanted[name] {
			differ("tag "+name, has, wanted[name])
		}
	}
	lb.SetTags(next.Tags, wanted)
	if len(differs) == 0 && is.Provisioning == lb.Failed {
		differs = []string{"its last write failed"}
	}
	return next, differs
}

// folded ignores order and case.
func folded(list []string) string {
	low := strings.Fields(strings.ToLower(strings.Join(list, " ")))
	slices.Sort(low)
	return strings.Join(slices.Compact(low), " ")
}

func byID(links []lb.PrivateLinkService, id lb.ResourceID) (lb.PrivateLinkService, bool) {
	at := slices.IndexFunc(links, func(p lb.PrivateLinkService) bool { return p.ID.Key() == id.Key() })
	if at < 0 {
		return lb.PrivateLinkService{ID: id}, false
	}
	return links[at], true
}

func busy(p lb.Provisioning) bool { return p == lb.Updating || p == lb.Deleting }

func wait(format string, args ...any) Step { return Step{Do: Wait, Why: fmt.Sprintf(format, args...)} }

func refusal(format string, args ...any) Step {
	return Step{Do: Refuse, Why: fmt.Sprintf(format, args...)}
}
