// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// links is an index of references between resources, derived from their bodies. It drives
// back-references, in-use errors and address allocation. Keys are lower-cased IDs, values IDs of IP
// configurations or of referencing resources.
//
// A running write may still fail and be reverted, so what it releases remains in use until it ends
// (assumed).
type links struct {
	publicIP map[string][]string // public IP → IP configurations
	prefix   map[string][]string // public IP prefix → public IPs, frontends
	subnet   map[string][]string // subnet → IP configurations
	pool     map[string][]string // backend pool → network interface IP configurations
	model    map[string][]string // backend pool → scale sets with a model that references it
	nic      map[string][]string // network interface → virtual machines
	first    map[string]bool     // primary network interfaces
	guarded  map[string][]string // security group → subnets and network interfaces
	// published maps a frontend to its private link services.
	published map[string][]string
	// private maps a subnet to its addresses in use.
	private map[string]map[netip.Addr]string
}

// index returns the current links. Requires the lock.
func (e *Emulator) index() *links {
	if e.links != nil {
		return e.links
	}
	l := &links{
		publicIP: map[string][]string{}, prefix: map[string][]string{}, subnet: map[string][]string{},
		pool: map[string][]string{}, model: map[string][]string{}, nic: map[string][]string{}, first: map[string]bool{}, guarded: map[string][]string{}, published: map[string][]string{}, private: map[string]map[netip.Addr]string{},
	}
	for _, agg := range e.sorted() {
		l.read(agg.id, agg.body)
		if agg.op != nil && agg.op.before != nil {
			l.read(agg.id, agg.op.before)
		}
	}
	e.links = l
	return l
}

func (l *links) read(id resourceID, body fields) {
	props := properties(body)
	note(l.guarded, reference(props, guardedBy), id.String())
	for _, f := range objects(props, publishedFrontends) {
		note(l.published, strings.ToLower(text(f, "id")), id.String())
	}
	switch {
	case id.root.configs != nil:
		for _, c := range objects(props, id.root.configs.collection) {
			l.readConfig(id.withChild(id.root.configs, text(c, "name")).String(), properties(c))
		}
	case id.root == publicIPKind:
		note(l.prefix, reference(props, "publicIPPrefix"), id.String())
	case id.root == virtualNetworkKind:
		for _, s := range objects(props, subnets) {
			note(l.guarded, reference(properties(s), guardedBy), id.withChild(subnetKind, text(s, "name")).String())
		}
	case id.root == scaleSetKind:
		for _, c := range memberConfigs("", props) {
			for _, pool := range objects(c, nicPools) {
				note(l.model, strings.ToLower(text(pool, "id")), id.String())
			}
		}
	case id.root == instanceKind:
		l.readInstance(id.String(), props)
	case id.root == virtualMachineKind:
		nics := objects(object(props, "networkProfile"), "networkInterfaces")
		for _, nic := range nics {
			note(l.nic, strings.ToLower(text(nic, "id")), id.String())
			marked, _ := properties(nic)["primary"].(bool)
			l.first[strings.ToLower(text(nic, "id"))] = marked || len(nics) == 1
		}
	}
}

// readInstance adds the network interfaces in a scale set instance's body.
func (l *links) readInstance(id string, props fields) {
	for config, c := range memberConfigs(id, props) {
		l.readConfig(config, c)
	}
}

// guardedBy is the property that references a security group.
const guardedBy = "networkSecurityGroup"

func (l *links) readConfig(id string, props fields) {
	note(l.publicIP, reference(props, "publicIPAddress"), id)
	note(l.prefix, reference(props, "publicIPPrefix"), id)
	for _, pool := range objects(props, nicPools) {
		note(l.pool, strings.ToLower(text(pool, "id")), id)
	}
	subnet := reference(props, "subnet")
	note(l.subnet, subnet, id)
	if addr, err := netip.ParseAddr(text(props, "privateIPAddress")); err == nil && subnet != "" {
		if l.private[subnet] == nil {
			l.private[subnet] = map[netip.Addr]string{}
		}
		l.private[subnet][addr] = id
	}
}

func note(m map[string][]string, key, id string) {
	if key != "" && !slices.Contains(m[key], id) {
		m[key] = append(m[key], id)
	}
}

// reference returns the lower-cased ID in a property, or "".
func reference(props fields, key string) string {
	return strings.ToLower(text(object(props, key), "id"))
}

// refs returns IDs as JSON references.
func refs(ids []string) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = fields{"id": id}
	}
	return out
}

// others returns the IDs that do not belong to the resource.
func others(ids []string, own resourceID) []string {
	root := own.rootKey() + "/"
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return strings.HasPrefix(strings.ToLower(id)+"/", root) })
}

// nicsOf returns the network interface IP configurations in a pool: seeded ones and those of
// modeled interfaces.
func (l *links) nicsOf(pool resourceID, body fields) []string {
	var ids []string
	for _, c := range objects(properties(body), nicConfigs) {
		ids = append(ids, text(c, "id"))
	}
	for _, id := range l.pool[pool.key()] {
		if !slices.ContainsFunc(ids, func(have string) bool { return strings.EqualFold(have, id) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// changed updates dependent resources after a write. Pool writes are frequent and reference nothing
// in the links.
func (e *Emulator) changed(id resourceID, before, after fields) {
	if id.child == poolKind {
		return
	}
	was := e.links
	e.links = nil
	e.retagOthers(id, was, e.index())
	e.forgetLeft(was, e.index())
	if id.root.configs != nil {
		e.followDynamic(id.root.configs, before)
		e.followDynamic(id.root.configs, after)
	}
}

// forgetKeptNICs removes entries from seeded pools if the network interface was seeded too.
func (e *Emulator) forgetKeptNICs() {
	for _, agg := range e.aggregates {
		if agg.id.root != loadBalancerKind {
			continue
		}
		for _, pool := range objects(properties(agg.body), pools) {
			left := slices.DeleteFunc(objects(properties(pool), nicConfigs), func(c fields) bool {
				nic, _, _ := strings.Cut(strings.ToLower(text(c, "id")), "/ipconfigurations/")
				return e.aggregates[nic] != nil
			})
			props := maps.Clone(properties(pool))
			delete(props, nicConfigs)
			if len(left) > 0 {
				props[nicConfigs] = array(left)
			}
			agg.body = withChildBody(agg.body, agg.id.withChild(poolKind, text(pool, "name")), with(pool, "properties", props))
		}
	}
}

// renderLinks adds the properties that derive from other resources.
func (a *aggregate) renderLinks(props fields, from *links) {
	key := a.id.key()
	switch a.id.root {
	case loadBalancerKind:
		if len(objects(properties(a.body), frontends)) > 0 {
			props["scope"] = "Public"
			if isInternal(a.body) {
				props["scope"] = "Private"
			}
		}
	case publicIPKind:
		if by := from.publicIP[key]; len(by) > 0 {
			props["ipConfiguration"] = fields{"id": by[0]}
		}
		if dns := object(props, "dnsSettings"); text(dns, "domainNameLabel") != "" {
			props["dnsSettings"] = with(dns, "fqdn", fqdn(a.body))
		}
	case publicIPPrefixKind:
		if by := from.prefix[key]; len(by) > 0 {
			props["publicIPAddresses"] = refs(by)
		}
	case securityGroupKind:
		for _, by := range from.guarded[key] {
			list := "networkInterfaces"
			if strings.Contains(by, "/"+subnets+"/") {
				list = subnets
			}
			there, _ := props[list].([]any)
			props[list] = append(slices.Clone(there), fields{"id": by})
		}
	case privateLinkServiceKind:
		props["networkInterfaces"] = refs([]string{a.id.networkInterface(a.guid)})
	case networkInterfaceKind:
		if by := from.nic[key]; len(by) > 0 {
			props["virtualMachine"], props["primary"] = fields{"id": by[0]}, from.first[key]
		}
	}
	// An allocated address appears when the creation is done.
	if a.op != nil && a.op.before == nil {
		for _, k := range a.id.root.kept {
			delete(props, k)
		}
	}
}
