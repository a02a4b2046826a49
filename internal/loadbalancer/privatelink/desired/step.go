// SPDX-License-Identifier: Apache-2.0

package desired

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

// The actions. [ActionInSync] is in sync; [ActionWait] waits for Azure, [ActionKeep] for users to fix reported
// problems, [ActionReject] for users to follow the reason. These four write nothing.
const (
	ActionInSync     Action = "in sync"
	ActionCreate     Action = "create"
	ActionUpdate     Action = "update"
	ActionOpenSubnet Action = "open the subnet"
	ActionDisconnect Action = "disconnect"
	ActionDelete     Action = "delete"
	ActionWait       Action = "wait"
	ActionKeep       Action = "keep"
	ActionReject     Action = "reject"
)

// Step is idempotent.
type Step struct {
	Action Action
	// Service is the new state, or the current one for a deletion.
	Service lb.PrivateLinkService
	// Connection is removed by [ActionDisconnect].
	Connection lb.PrivateEndpointConnection
	// Subnet is written by [ActionOpenSubnet].
	Subnet lb.Subnet
	// Reason is one sentence: the difference, the wait, or the problem and its fix.
	Reason string
}

// IsWrite reports whether the step writes to Azure.
func (s Step) IsWrite() bool {
	return slices.Contains([]Action{ActionCreate, ActionUpdate, ActionOpenSubnet, ActionDisconnect, ActionDelete}, s.Action)
}

// NextStep removes unwanted Private Link Services first, connections before them, then creates or
// changes the wanted one. links are all of the cluster's resource groups; subnet is the one named
// by RequiredSubnet, or nil if not read.
func NextStep(f Frontend, v Decision, links []lb.PrivateLinkService, subnet *lb.Subnet, settings Settings) Step {
	if v.KeepCurrent {
		return Step{Action: ActionKeep}
	}
	existing := linksOn(f, links)
	if v.Desired != nil {
		if reason := blockReason(f, v, existing, links, settings); reason != "" {
			return Step{Action: ActionReject, Reason: reason}
		}
	}
	for _, p := range existing {
		if isForeign(p, settings) || v.Desired != nil && p.ID.Key() == v.Desired.ID.Key() {
			continue
		}
		return removeStep(p, v.Desired)
	}
	if v.Desired == nil {
		return Step{Action: ActionInSync}
	}
	at, found := findByID(links, v.Desired.ID)
	switch {
	case !found:
		return writeStep(Step{Action: ActionCreate, Service: *v.Desired, Reason: "private link service " + at.ID.Name + " is to publish frontend " + f.Name}, lb.PrivateLinkService{}, subnet, settings)
	case isUpdating(at.Provisioning):
		return waitStep("Azure is at work on private link service %s (%s)", at.ID.Name, at.Provisioning)
	case len(at.Frontends) > 0 && !hasFrontend(at, f.ID):
		return waitStep("private link service %s has yet to go from %s", at.ID.Name, strings.Join(at.Frontends, ", "))
	}
	next, differs := diffLink(at, *v.Desired)
	if len(differs) == 0 {
		return Step{Action: ActionInSync, Service: at}
	}
	return writeStep(Step{Action: ActionUpdate, Service: next, Reason: "private link service " + at.ID.Name + ": " + strings.Join(differs, "; ")}, at, subnet, settings)
}

// blockReason returns "" if nothing blocks the wanted Private Link Service.
func blockReason(f Frontend, v Decision, existing, links []lb.PrivateLinkService, settings Settings) string {
	at, found := findByID(links, v.Desired.ID)
	switch {
	case found && isForeign(at, settings):
		return fmt.Sprintf("private link service %s exists already, and its tags (%s, %s) show no owner of this cluster: use another name in %s, or tag or delete that one", at.ID.Name, service.TagLinkOwner, service.TagCluster, service.PLSName)
	case found && len(at.Frontends) > 0 && !hasFrontend(at, f.ID) && OwnerOf(at) != v.Owner:
		return fmt.Sprintf("private link service %s is that of %s, on another frontend: name another in %s", at.ID.Name, service.DescribeOwner(OwnerOf(at)), service.PLSName)
	}
	for _, p := range existing {
		switch {
		case isForeign(p, settings):
			return fmt.Sprintf("frontend %s has private link service %s, whose tags (%s, %s) show no owner of this cluster: detach it from the frontend, or remove %s", f.Name, p.ID, service.TagLinkOwner, service.TagCluster, service.PLSCreate)
		case p.ID.Key() != v.Desired.ID.Key() && len(p.Connections) > 0 && p.Provisioning != lb.Deleting:
			return fmt.Sprintf("private link service %s would be replaced by %s, and its private endpoints would lose their connections (%s): take the name back, or set %s to \"false\" first, which removes them", p.ID.Name, v.Desired.ID.Name, CountConnections(p), service.PLSCreate)
		}
	}
	return ""
}

// removeStep deletes the connections one by one, then the Private Link Service.
func removeStep(p lb.PrivateLinkService, successor *lb.PrivateLinkService) Step {
	if p.Provisioning == lb.Deleting {
		return waitStep("Azure is at work on private link service %s (%s)", p.ID.Name, p.Provisioning)
	}
	connections := slices.SortedFunc(slices.Values(p.Connections), func(a, b lb.PrivateEndpointConnection) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range connections {
		if isUpdating(c.Provisioning) {
			return waitStep("private link service %s has yet to lose connection %s of private endpoint %s (%s)", p.ID.Name, c.Name, c.Endpoint, c.Provisioning)
		}
	}
	if isUpdating(p.Provisioning) {
		return waitStep("Azure is at work on private link service %s (%s)", p.ID.Name, p.Provisioning)
	}
	if len(connections) > 0 {
		c := connections[0]
		return Step{Action: ActionDisconnect, Service: p, Connection: c, Reason: fmt.Sprintf("connection %s of private endpoint %s is deleted before private link service %s (%d left after it)", c.Name, c.Endpoint, p.ID.Name, len(connections)-1)}
	}
	reason := "no Service requests private link service " + p.ID.Name
	if successor != nil {
		reason = "private link service " + successor.ID.Name + " replaces " + p.ID.Name
	}
	return Step{Action: ActionDelete, Service: p, Reason: reason}
}

// writeStep opens the subnet first if necessary.
func writeStep(step Step, link lb.PrivateLinkService, subnet *lb.Subnet, settings Settings) Step {
	if a := firstInvalidAddress(step.Service.NAT, subnet); a.IsValid() {
		return rejectStep("%s names %s, which is not of subnet %s", service.PLSAddresses, a, subnet.Name)
	}
	enters := slices.ContainsFunc(step.Service.NAT, func(n lb.NATAddress) bool {
		return !slices.ContainsFunc(link.NAT, func(have lb.NATAddress) bool { return strings.EqualFold(have.Subnet, n.Subnet) })
	})
	switch {
	case subnet == nil || !subnet.LinkPolicies || !enters:
		return step
	case isUpdating(subnet.Provisioning):
		return waitStep("Azure is at work on subnet %s (%s)", subnet.Name, subnet.Provisioning)
	case settings.CanOpenSubnets:
		next := *subnet
		next.LinkPolicies = false
		return Step{Action: ActionOpenSubnet, Subnet: next, Reason: "network policies of subnet " + subnet.Name + " keep private link services out"}
	}
	n := subnet.Network
	return rejectStep("network policies of subnet %s keep private link services out: az network vnet subnet update --subscription %s --resource-group %s --vnet-name %s --name %s --private-link-service-network-policies Disabled", subnet.Name, n.SubscriptionID, n.ResourceGroup, n.Name, subnet.Name)
}

// RequiredSubnet returns the ARM id of the subnet to read before [NextStep], or "".
func RequiredSubnet(v Decision, links []lb.PrivateLinkService) string {
	if v.Desired == nil {
		return ""
	}
	link, _ := findByID(links, v.Desired.ID)
	if isSameNAT(link.NAT, v.Desired.NAT) {
		return ""
	}
	return v.Desired.NAT[0].Subnet
}

// DescribePublishers describes what publishes a frontend and so blocks its deletion, or "".
func DescribePublishers(f Frontend, links []lb.PrivateLinkService) string {
	var texts []string
	for _, p := range linksOn(f, links) {
		texts = append(texts, fmt.Sprintf("private link service %s publishes frontend %s (%s)", p.ID, f.Name, CountConnections(p)))
	}
	return strings.Join(texts, "; ")
}

func diffLink(link, want lb.PrivateLinkService) (next lb.PrivateLinkService, differs []string) {
	next = link
	differ := func(property, got, wants string) {
		differs = append(differs, fmt.Sprintf("%s %s, Weir wants %s", property, cmp.Or(got, "none"), cmp.Or(wants, "none")))
	}
	if len(link.Frontends) == 0 {
		next.Frontends = want.Frontends
		differ("frontends", "", strings.Join(want.Frontends, " "))
	}
	if !isSameNAT(link.NAT, want.NAT) {
		next.NAT = mergeNAT(link.NAT, want.NAT)
		differ("addresses", formatNAT(link.NAT), formatNAT(want.NAT))
	}
	if link.ProxyProtocol != want.ProxyProtocol {
		next.ProxyProtocol = want.ProxyProtocol
		differ("PROXY protocol", strconv.FormatBool(link.ProxyProtocol), strconv.FormatBool(want.ProxyProtocol))
	}
	for _, list := range []struct {
		field         string
		current, want []string
		next          *[]string
	}{
		{"FQDNs", link.FQDNs, want.FQDNs, &next.FQDNs}, {"visibility", link.Visibility, want.Visibility, &next.Visibility},
		{"auto-approval", link.AutoApproval, want.AutoApproval, &next.AutoApproval},
	} {
		if got, wants := normalizeList(list.current), normalizeList(list.want); got != wants {
			*list.next = list.want
			differ(list.field, got, wants)
		}
	}
	next.Tags = maps.Clone(link.Tags)
	if next.Tags == nil {
		next.Tags = map[string]string{}
	}
	wanted := maps.Clone(want.Tags)
	if OwnerOf(link) == want.Tags[service.TagLinkOwner] {
		delete(wanted, service.TagLinkOwner) // the old tag name counts, too
	} else {
		lb.UnsetTag(next.Tags, service.TagLinkOwnerBefore)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if got := lb.TagValue(link.Tags, name); got != wanted[name] {
			differ("tag "+name, got, wanted[name])
		}
	}
	lb.SetTags(next.Tags, wanted)
	if len(differs) == 0 && link.Provisioning == lb.Failed {
		differs = []string{"its last write failed"}
	}
	return next, differs
}

// normalizeList ignores order and case.
func normalizeList(list []string) string {
	low := strings.Fields(strings.ToLower(strings.Join(list, " ")))
	slices.Sort(low)
	return strings.Join(slices.Compact(low), " ")
}

func findByID(links []lb.PrivateLinkService, id lb.ResourceID) (lb.PrivateLinkService, bool) {
	at := slices.IndexFunc(links, func(p lb.PrivateLinkService) bool { return p.ID.Key() == id.Key() })
	if at < 0 {
		return lb.PrivateLinkService{ID: id}, false
	}
	return links[at], true
}

func isUpdating(p lb.Provisioning) bool { return p == lb.Updating || p == lb.Deleting }

func waitStep(format string, args ...any) Step {
	return Step{Action: ActionWait, Reason: fmt.Sprintf(format, args...)}
}

func rejectStep(format string, args ...any) Step {
	return Step{Action: ActionReject, Reason: fmt.Sprintf(format, args...)}
}
