// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// referenceIndex is an index of references between resources. Keys are lower-cased IDs, values IDs of IP
// configurations or of referencing resources. A running write may be reverted, so what it releases
// remains in use until it ends (assumed).
type referenceIndex struct {
	publicIP      map[string][]string // public IP → IP configurations
	prefix        map[string][]string // public IP prefix → public IPs, frontends
	subnet        map[string][]string // subnet → IP configurations
	pool          map[string][]string // backend pool → network interface IP configurations
	model         map[string][]string // backend pool → scale sets with a model that references it
	health        map[string][]string // probe → scale sets with it as health probe
	nic           map[string][]string // network interface → virtual machines
	primary       map[string]bool     // primary network interfaces
	securityGroup map[string][]string // security group → subnets and network interfaces
	// frontend → private link services
	privateLinks map[string][]string
	// subnet → addresses in use
	privateIPs map[string]map[netip.Addr]string
}

// references requires the lock.
func (e *Emulator) references() *referenceIndex {
	if e.links != nil {
		return e.links
	}
	l := &referenceIndex{
		publicIP: map[string][]string{}, prefix: map[string][]string{}, subnet: map[string][]string{},
		pool: map[string][]string{}, model: map[string][]string{}, health: map[string][]string{}, nic: map[string][]string{}, primary: map[string]bool{}, securityGroup: map[string][]string{}, privateLinks: map[string][]string{}, privateIPs: map[string]map[netip.Addr]string{},
	}
	for _, agg := range e.sortedAggregates() {
		l.addResource(agg.id, agg.body)
		if agg.op != nil && agg.op.before != nil {
			l.addResource(agg.id, agg.op.before)
		}
	}
	e.links = l
	return l
}

func (r *referenceIndex) addResource(id resourceID, body fields) {
	props := propertyFields(body)
	addReference(r.securityGroup, referenceID(props, securityGroupKey), id.String())
	for _, f := range objectList(props, privateLinkFrontends) {
		addReference(r.privateLinks, strings.ToLower(stringField(f, "id")), id.String())
	}
	switch {
	case id.root.ipConfigs != nil:
		for _, c := range objectList(props, id.root.ipConfigs.collection) {
			r.addIPConfig(id.withChild(id.root.ipConfigs, stringField(c, "name")).String(), propertyFields(c))
		}
	case id.root == publicIPKind:
		addReference(r.prefix, referenceID(props, "publicIPPrefix"), id.String())
	case id.root == virtualNetworkKind:
		for _, s := range objectList(props, subnets) {
			addReference(r.securityGroup, referenceID(propertyFields(s), securityGroupKey), id.withChild(subnetKind, stringField(s, "name")).String())
		}
	case id.root == scaleSetKind:
		addReference(r.health, strings.ToLower(healthProbe(body)), id.String())
		for _, c := range instanceIPConfigs("", props) {
			for _, pool := range objectList(c, nicPools) {
				addReference(r.model, strings.ToLower(stringField(pool, "id")), id.String())
			}
		}
	case id.root == instanceKind:
		r.addInstance(id.String(), props)
	case id.root == virtualMachineKind:
		nics := objectList(objectField(props, "networkProfile"), "networkInterfaces")
		for _, nic := range nics {
			addReference(r.nic, strings.ToLower(stringField(nic, "id")), id.String())
			marked, _ := propertyFields(nic)["primary"].(bool)
			r.primary[strings.ToLower(stringField(nic, "id"))] = marked || len(nics) == 1
		}
	}
}

func (r *referenceIndex) addInstance(id string, props fields) {
	for config, c := range instanceIPConfigs(id, props) {
		r.addIPConfig(config, c)
	}
}

const securityGroupKey = "networkSecurityGroup"

func (r *referenceIndex) addIPConfig(id string, props fields) {
	addReference(r.publicIP, referenceID(props, "publicIPAddress"), id)
	addReference(r.prefix, referenceID(props, "publicIPPrefix"), id)
	for _, pool := range objectList(props, nicPools) {
		addReference(r.pool, strings.ToLower(stringField(pool, "id")), id)
	}
	subnet := referenceID(props, "subnet")
	addReference(r.subnet, subnet, id)
	if addr, err := netip.ParseAddr(stringField(props, "privateIPAddress")); err == nil && subnet != "" {
		if r.privateIPs[subnet] == nil {
			r.privateIPs[subnet] = map[netip.Addr]string{}
		}
		r.privateIPs[subnet][addr] = id
	}
}

func addReference(m map[string][]string, key, id string) {
	if key != "" && !slices.Contains(m[key], id) {
		m[key] = append(m[key], id)
	}
}

func referenceID(props fields, key string) string {
	return strings.ToLower(stringField(objectField(props, key), "id"))
}

func toReferences(ids []string) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = fields{"id": id}
	}
	return out
}

func excludeOwn(ids []string, own resourceID) []string {
	root := own.rootKey() + "/"
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.HasPrefix(strings.ToLower(id)+"/", root) })
}

// poolNICs includes seeded entries.
func (r *referenceIndex) poolNICs(pool resourceID, body fields) []string {
	var ids []string
	for _, c := range objectList(propertyFields(body), nicConfigs) {
		ids = append(ids, stringField(c, "id"))
	}
	for _, id := range r.pool[pool.key()] {
		if !slices.ContainsFunc(ids, func(have string) bool { return strings.EqualFold(have, id) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// updateReferences ignores pool writes: frequent, and they reference nothing in the links.
func (e *Emulator) updateReferences(id resourceID, before, after fields) {
	if id.child == poolKind {
		return
	}
	old := e.links
	e.links = nil
	e.renewOtherEtags(id, old, e.references())
	e.dropLeftEntries(old, e.references())
	if id.root.ipConfigs != nil {
		e.updateDynamicIPs(id.root.ipConfigs, before)
		e.updateDynamicIPs(id.root.ipConfigs, after)
	}
}

func (e *Emulator) dropSeededNICs() {
	for _, agg := range e.aggregates {
		if agg.id.root != loadBalancerKind {
			continue
		}
		for _, pool := range objectList(propertyFields(agg.body), pools) {
			remaining := slices.DeleteFunc(objectList(propertyFields(pool), nicConfigs), func(c fields) bool {
				nic, _, _ := strings.Cut(strings.ToLower(stringField(c, "id")), "/ipconfigurations/")
				return e.aggregates[nic] != nil
			})
			props := maps.Clone(propertyFields(pool))
			delete(props, nicConfigs)
			if len(remaining) > 0 {
				props[nicConfigs] = toArray(remaining)
			}
			agg.body = withChildBody(agg.body, agg.id.withChild(poolKind, stringField(pool, "name")), withField(pool, "properties", props))
		}
	}
}

func (a *aggregate) renderLinks(props fields, from *referenceIndex) {
	key := a.id.key()
	switch a.id.root {
	case loadBalancerKind:
		if len(objectList(propertyFields(a.body), frontends)) > 0 {
			props["scope"] = "Public"
			if isInternal(a.body) {
				props["scope"] = "Private"
			}
		}
	case publicIPKind:
		if by := from.publicIP[key]; len(by) > 0 {
			props["ipConfiguration"] = fields{"id": by[0]}
		}
		if dns := objectField(props, "dnsSettings"); stringField(dns, "domainNameLabel") != "" {
			props["dnsSettings"] = withField(dns, "fqdn", dnsName(a.body))
		}
	case publicIPPrefixKind:
		if by := from.prefix[key]; len(by) > 0 {
			props["publicIPAddresses"] = toReferences(by)
		}
	case securityGroupKind:
		for _, by := range from.securityGroup[key] {
			list := "networkInterfaces"
			if strings.Contains(by, "/"+subnets+"/") {
				list = subnets
			}
			there, _ := props[list].([]any)
			props[list] = append(slices.Clone(there), fields{"id": by})
		}
	case privateLinkServiceKind:
		props["networkInterfaces"] = toReferences([]string{a.id.networkInterfaceID(a.guid)})
	case networkInterfaceKind:
		if by := from.nic[key]; len(by) > 0 {
			props["virtualMachine"], props["primary"] = fields{"id": by[0]}, from.primary[key]
		}
	}
	// An allocated address appears when the creation is done.
	if a.op != nil && a.op.before == nil {
		for _, k := range a.id.root.serverState {
			delete(props, k)
		}
	}
}
