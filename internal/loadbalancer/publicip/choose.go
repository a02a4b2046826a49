// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// choosePublicIP returns the desired state of the public IP for a Service's frontend and whether it must be written.
// known are the existing public IPs by key; check returns why the Service may not use one that Weir did not
// make, and place sets the zones of a new one.
func choosePublicIP(want service.PublicIP, known map[string]lb.PublicIP, req *Request, on lb.LoadBalancerID, location string, check func(lb.PublicIP) error, place func(*lb.PublicIP, service.PublicIP) error) (next lb.PublicIP, write bool, err error) {
	ip, found := findPublicIP(want, known)
	switch {
	case !found && want.Address.IsValid():
		return ip, false, fmt.Errorf("resource group %s has no public IP with address %s: create it, or name a resource group in %s",
			want.ID.ResourceGroup, want.Address, service.PIPResourceGroup)
	case !found && want.UserNamed:
		return ip, false, fmt.Errorf("resource group %s has no public IP %s: create it, or remove the annotation that names it",
			want.ID.ResourceGroup, want.ID.Name)
	case !found && location == "":
		return ip, false, fmt.Errorf(`public IP %s has to be made, and azure.json does not say where: set its key "location"`, want.ID.Name)
	case !found:
		next = newPublicIP(want, location)
		return next, true, place(&next, want)
	}
	if err := checkUsable(ip, want, req.Owner, on); err != nil {
		return ip, false, err
	}
	if err := checkReserved(ip, want, req.Service); err != nil {
		return ip, false, err
	}
	if isUserProvided(want) || isRetained(ip) {
		if err := check(ip); err != nil {
			return ip, false, err
		}
	}
	// Retry a failed write even if the public IP looks correct.
	write = !isUserProvided(want) && (ip.Provisioning == lb.Failed || ip.Etag != "" && !ip.Address.IsValid())
	next = ip
	next.Tags = maps.Clone(ip.Tags)
	if next.Tags == nil {
		next.Tags = map[string]string{}
	}
	if !isUserProvided(want) {
		if err := checkTag(ip, want, req.Service); err != nil {
			return ip, false, err
		}
		if err := checkImmutable(ip, want); err != nil {
			return ip, false, err
		}
		lb.SetTags(next.Tags, want.Tags)
	}
	if err := setLabel(&next, want, req.Service); err != nil {
		return ip, false, err
	}
	return next, write || next.DNSLabel != ip.DNSLabel || !maps.Equal(next.Tags, ip.Tags), nil
}

// isUserProvided reports whether the user provides the public IP. Only its DNS label may change.
func isUserProvided(want service.PublicIP) bool { return want.UserNamed || want.Address.IsValid() }

func findPublicIP(want service.PublicIP, known map[string]lb.PublicIP) (lb.PublicIP, bool) {
	if !want.Address.IsValid() {
		ip, found := known[want.ID.Key()]
		return ip, found
	}
	for _, ip := range known {
		if ip.Address == want.Address && strings.EqualFold(ip.ID.ResourceGroup, want.ID.ResourceGroup) {
			return ip, true
		}
	}
	return lb.PublicIP{}, false
}

func newPublicIP(want service.PublicIP, location string) lb.PublicIP {
	return lb.PublicIP{
		ID: want.ID, Location: location, SKU: lb.Standard, Static: true, Family: want.Family,
		Prefix: want.Prefix, IPTags: want.IPTags, DNSLabel: want.DNSLabel, Tags: want.Tags,
	}
}

// ErrBasic means the load balancer must be migrated to the Standard SKU first.
var ErrBasic = errors.New("Weir writes Standard ones only; weir migrate plan shows how it becomes one; each address is kept") //nolint:staticcheck // a name begins it

func checkUsable(ip lb.PublicIP, want service.PublicIP, owner string, on lb.LoadBalancerID) error {
	switch {
	case ip.SKU != lb.Standard && hasPrefixFold(ip.UsedBy, on.String()+"/"):
		return fmt.Errorf("public IP %s is of SKU %s, as its load balancer is: %w", ip.ID.Name, ip.SKU, ErrBasic)
	case ip.Global:
		return fmt.Errorf("public IP %s is of tier Global, which only a Global load balancer can use: choose one of tier Regional", ip.ID.Name)
	case ip.SKU != lb.Standard:
		return fmt.Errorf("public IP %s is of SKU %s, and a Standard load balancer requires a Standard one: upgrade it, or choose another", ip.ID.Name, ip.SKU)
	case ip.Family != want.Family:
		return fmt.Errorf("public IP %s has an %s address, and one of %s is needed", ip.ID.Name, ip.Family, want.Family)
	case ip.UsedBy != "" && !hasPrefixFold(ip.UsedBy, on.String()+"/"):
		return checkUser(ip, owner, on)
	case isUserProvided(want) && ip.Provisioning == lb.Failed:
		return fmt.Errorf("the last write of public IP %s failed, and Azure refuses every load balancer with it: write it again, or choose another", ip.ID.Name)
	case !ip.Address.IsValid() && isUserProvided(want) && ip.Etag != "":
		return fmt.Errorf("public IP %s has no address yet", ip.ID.Name)
	}
	return nil
}

// checkUser returns an error if something else uses a public IP. That may be the Service itself, on a load balancer
// that azure.json no longer names and Weir no longer writes.
func checkUser(ip lb.PublicIP, owner string, on lb.LoadBalancerID) error {
	if prefix := strings.TrimSuffix(on.String(), on.Name); hasPrefixFold(ip.UsedBy, prefix) {
		name, frontend, _ := strings.Cut(ip.UsedBy[len(prefix):], "/frontendIPConfigurations/")
		if hasPrefixFold(frontend, owner) {
			return fmt.Errorf("public IP %s is still in use by load balancer %s, where the Service was before: name that in azure.json again, "+
				"and have the Service leave it by %s", ip.ID.Name, name, service.Configurations)
		}
	}
	return fmt.Errorf("public IP %s is in use by %s: free it, or choose another", ip.ID.Name, ip.UsedBy)
}

// checkTag returns an error if a public IP with the default name carries another Service's tag. An empty
// tag means no owner.
func checkTag(ip lb.PublicIP, want service.PublicIP, key string) error {
	const way = "take that tag away if it is a mistake"
	if of := lb.TagValue(ip.Tags, service.TagCluster); of != "" && !strings.EqualFold(of, want.Tags[service.TagCluster]) {
		return fmt.Errorf("public IP %s is tagged as one of cluster %s (%s): %s", ip.ID.Name, of, service.TagCluster, way)
	}
	of := lb.TagValue(ip.Tags, service.TagService)
	names := strings.Split(of, ",")
	if of != "" && !slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == key }) {
		return fmt.Errorf("public IP %s is tagged as one of %s (%s): %s", ip.ID.Name, service.DescribeOwner(of), service.TagService, way)
	}
	return nil
}

// checkReserved rejects a named public IP that waits for the Service of another namespace that it was made for;
// otherwise the first to use it would take it over. A public IP in use belongs to the owner of its frontend.
func checkReserved(ip lb.PublicIP, want service.PublicIP, key string) error {
	of := lb.TagValue(ip.Tags, service.TagService)
	if !isUserProvided(want) || of == "" || ip.UsedBy != "" || ManagedOwner(ip, want.Tags[service.TagCluster]) == "" {
		return nil
	}
	if hasNamespaceTag(ip, namespaceOf(key)) {
		return nil
	}
	return fmt.Errorf("public IP %s was made for %s, and only Services of one namespace share an address: choose another, or have both in one namespace", ip.ID.Name, service.DescribeOwner(of))
}

func hasNamespaceTag(ip lb.PublicIP, namespace string) bool {
	return slices.ContainsFunc(strings.Split(lb.TagValue(ip.Tags, service.TagService), ","), func(name string) bool {
		return namespaceOf(strings.TrimSpace(name)) == namespace
	})
}

// checkImmutable returns an immutable property of a public IP that differs from what the Service wants, as an
// error.
func checkImmutable(ip lb.PublicIP, want service.PublicIP) error {
	const way = "Azure cannot change that: take the annotation back, or delete the Service and create it again, with another address"
	switch {
	case want.Prefix != "" && !strings.EqualFold(ip.Prefix, want.Prefix) && (!want.PrefixAnyFamily || want.Family != lb.IPv6):
		return fmt.Errorf("public IP %s is not of prefix %s. %s", ip.ID.Name, want.Prefix, way)
	case len(want.IPTags) > 0 && !maps.Equal(ip.IPTags, want.IPTags):
		return fmt.Errorf("public IP %s has other IP tags than %s requests. %s", ip.ID.Name, service.PIPIPTags, way)
	}
	named := service.ZoneChoice(want.Zones)
	if ip.ExtendedLocation != "" {
		return named.CheckEdgeZone(ip.ExtendedLocation)
	}
	return named.CheckExisting("public IP "+ip.ID.Name, ip.Zones)
}

// setLabel sets the DNS label that a Service requests. The first Service that requested it owns it.
func setLabel(ip *lb.PublicIP, want service.PublicIP, key string) error {
	takesBack := want.LabelOnOther && lb.TagValue(ip.Tags, service.TagDNSLabel) == key
	if !want.SetsDNSLabel && !takesBack || ip.DNSLabel == want.DNSLabel && (want.DNSLabel == "" || isUserProvided(want)) {
		return nil
	}
	if of := lb.TagValue(ip.Tags, service.TagDNSLabel); of != "" && of != key && ip.DNSLabel != want.DNSLabel {
		return fmt.Errorf("public IP %s has the DNS label %q of %s: %s cannot request another", ip.ID.Name, ip.DNSLabel, service.DescribeOwner(of), service.DNSLabel)
	}
	ip.DNSLabel = want.DNSLabel
	if want.DNSLabel == "" {
		lb.UnsetTag(ip.Tags, service.TagDNSLabel)
		return nil
	}
	lb.SetTags(ip.Tags, map[string]string{service.TagDNSLabel: key})
	return nil
}

// ForeignAddresses describes the public IPs in the Service's resource groups that it may not use, by address.
func (m *Manager) ForeignAddresses(ctx context.Context, key, owner string, spec *service.Spec) (map[netip.Addr]string, error) {
	groups := map[string]lb.ResourceID{}
	for _, g := range append([]lb.ResourceID{resourceGroup(m.cfg.Group)}, groupsOf(spec)...) {
		groups[g.Key()] = g
	}
	other := map[netip.Addr]string{}
	owned, err := m.ownersNow(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		ips, err := m.cfg.Azure.ListPublicIPs(ctx, groups[g].SubscriptionID, groups[g].ResourceGroup)
		if err != nil {
			return nil, fmt.Errorf("public IPs of resource group %s: %w", groups[g].ResourceGroup, err)
		}
		for _, ip := range ips {
			if of := cmp.Or(m.cfg.userText(ip, key, owner, spec), m.cfg.ownerText(ip, key, spec, owned)); of != "" && ip.Address.IsValid() {
				other[ip.Address] = of
			}
		}
	}
	return other, nil
}

// userText describes the user of a public IP that a Service may not name as an additional address: another Service
// or a machine. Empty if the Service may: it is free or forwards to this load balancer.
func (c *Config) userText(ip lb.PublicIP, key, owner string, spec *service.Spec) string {
	tags := strings.Split(lb.TagValue(ip.Tags, service.TagService), ",")
	sameCluster := strings.EqualFold(lb.TagValue(ip.Tags, service.TagCluster), c.ClusterName)
	switch {
	case MayUse(spec, ip):
		return ""
	case sameCluster && tags[0] != "" && !slices.ContainsFunc(tags, func(tag string) bool { return strings.TrimSpace(tag) == key }):
		return "public IP " + ip.ID.Name + ", which was made for Service " + tags[0]
	case strings.Contains(strings.ToLower(ip.UsedBy), "/networkinterfaces/"):
		return "public IP " + ip.ID.Name + ", which a machine has"
	}
	for _, id := range c.LoadBalancers {
		if on := id.String() + "/frontendIPConfigurations/"; hasPrefixFold(ip.UsedBy, on) && !hasPrefixFold(ip.UsedBy, on+owner) {
			return "public IP " + ip.ID.Name + ", which load balancer " + id.Name + " has for others"
		}
	}
	return ""
}

func (r *Round) skipConflicting(req *Request, updates []lb.PublicIP, changes []bool) {
	var differ []conflict.RevertedPart
	for _, next := range updates {
		differ = append(differ, changedFields(r.known[next.ID.Key()], next)...)
	}
	if !r.cfg.Conflicts.RecordReverts(conflict.PublicIPs, req.Service, req.DesiredKey, "its public IPs", differ, time.Now()) {
		return
	}
	for i, next := range updates {
		if publicIP := r.known[next.ID.Key()]; publicIP.Etag != "" {
			updates[i], changes[i] = publicIP, false
		}
	}
}

func changedFields(publicIP, want lb.PublicIP) []conflict.RevertedPart {
	var texts []string
	if publicIP.DNSLabel != want.DNSLabel {
		texts = append(texts, fmt.Sprintf("domainNameLabel %s, Weir wants %s", orNone(publicIP.DNSLabel), orNone(want.DNSLabel)))
	}
	for _, name := range slices.Sorted(maps.Keys(want.Tags)) {
		if old := lb.TagValue(publicIP.Tags, name); old != want.Tags[name] {
			texts = append(texts, fmt.Sprintf("tag %s %s, Weir wants %s", name, orNone(old), orNone(want.Tags[name])))
		}
	}
	if publicIP.Etag == "" || len(texts) == 0 {
		return nil
	}
	text := "public IP " + publicIP.ID.Name
	return []conflict.RevertedPart{{Part: strings.ToLower(text), Text: text + ": " + strings.Join(texts, "; ")}}
}

func orNone(text string) string { return cmp.Or(text, "none") }
