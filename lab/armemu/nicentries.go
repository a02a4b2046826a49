// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

// A pool shows an address for each network interface IP configuration in it. The interfaces decide
// on membership; a write of the pool only sets admin states.

func nicOf(entry fields) string {
	return reference(properties(entry), "networkInterfaceIPConfiguration")
}

// entriesOf returns the addresses of a pool: the stored ones, plus one per remaining IP
// configuration.
func entriesOf(from *links, pool resourceID, body fields) []fields {
	entries := objects(properties(body), addresses)
	stored := map[string]bool{}
	for _, a := range entries {
		stored[nicOf(a)] = true
	}
	for _, id := range from.nicsOf(pool, body) {
		if !stored[strings.ToLower(id)] {
			entries = append(entries, fields{
				"name":       nicEntryName(id),
				"properties": fields{"networkInterfaceIPConfiguration": fields{"id": id}},
			})
		}
	}
	return entries
}

// nicEntryName returns Azure's name for the address of an IP configuration: resource group and
// names for a network interface, a GUID for a scale set's (observed).
func nicEntryName(id string) string {
	parts := strings.Split(id, "/")
	group := slices.IndexFunc(parts, func(p string) bool { return sameName(p, "resourceGroups") })
	nic := slices.IndexFunc(parts, func(p string) bool { return sameName(p, "networkInterfaces") })
	inSet := slices.ContainsFunc(parts, func(p string) bool { return sameName(p, "virtualMachineScaleSets") })
	if group < 0 || nic < group || nic+3 >= len(parts) || inSet {
		sum := sha256.Sum256([]byte(strings.ToLower(id)))
		return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	}
	return parts[group+1] + "_" + parts[nic+1] + parts[nic+3]
}

// takeEntries returns a pool's body as stored after a write: an address with only the name of an
// interface's address refers to it, and an omitted one loses its admin state.
func (e *Emulator) takeEntries(pool resourceID, before, body fields) fields {
	nics := e.index().nicsOf(pool, body)
	if len(nics) == 0 {
		return body
	}
	list := objects(properties(body), addresses)
	for _, known := range entriesOf(e.index(), pool, before) {
		id := nicOf(known)
		if !slices.ContainsFunc(nics, func(nic string) bool { return sameName(nic, id) }) ||
			slices.ContainsFunc(list, func(a fields) bool { return nicOf(a) == id }) {
			continue
		}
		target := fields{"networkInterfaceIPConfiguration": object(properties(known), "networkInterfaceIPConfiguration")}
		i := indexByName(list, text(known, "name"))
		if i < 0 || text(properties(list[i]), "ipAddress") != "" || isNIC(list[i]) || isFrontend(list[i]) {
			list = append(list, fields{"name": known["name"], "properties": target})
			continue
		}
		list[i] = with(list[i], "properties", filled(properties(list[i]), target))
	}
	if e.opts.Behaviour.InterfaceAdminState == behaviour.Ignored {
		list = withStatesOf(list, entriesOf(e.index(), pool, before))
	}
	return with(body, "properties", with(properties(body), addresses, array(list)))
}

// takeAllEntries applies takeEntries to the pools of a load balancer.
func (e *Emulator) takeAllEntries(balancer resourceID, before, root fields) fields {
	list, old := objects(properties(root), pools), objects(properties(before), pools)
	for i, pool := range list {
		var was fields
		if j := indexByName(old, text(pool, "name")); j >= 0 {
			was = old[j]
		}
		id := balancer.withChild(poolKind, text(pool, "name"))
		entries := inlineEntries(e.opts.Behaviour, was == nil, entriesOf(e.index(), id, was), objects(properties(pool), addresses))
		props := with(properties(pool), addresses, array(entries))
		if network, ok := properties(was)["virtualNetwork"]; ok && e.opts.Behaviour.WholeWriteAddresses == behaviour.Ignored {
			props["virtualNetwork"] = network // belongs to the addresses
		}
		pool = with(pool, "properties", props)
		list[i] = e.takeEntries(id, was, pool)
	}
	return with(root, "properties", with(properties(root), pools, array(list)))
}

// forgetLeft removes stored entries of IP configurations that left a pool: one that joins again has
// no admin state.
func (e *Emulator) forgetLeft(was, is *links) {
	if was == nil {
		return
	}
	for _, pool := range moved(was.pool, is.pool) {
		for _, nic := range was.pool[pool] {
			if !slices.Contains(is.pool[pool], nic) {
				e.forgetEntry(pool, strings.ToLower(nic))
			}
		}
	}
}

func (e *Emulator) forgetEntry(pool, nic string) {
	id, err := parseID(pool)
	if err != nil {
		return
	}
	agg := e.aggregates[id.rootKey()]
	if agg == nil {
		return
	}
	body := findChild(agg.body, id)
	if list := objects(properties(body), addresses); slices.ContainsFunc(list, func(a fields) bool { return nicOf(a) == nic }) {
		list = slices.DeleteFunc(list, func(a fields) bool { return nicOf(a) == nic })
		agg.body = withChildBody(agg.body, id, with(body, "properties", with(properties(body), addresses, array(list))))
	}
}

// ipOf returns the IP address of a pool entry or of its modeled IP configuration; invalid if
// unknown.
func (e *Emulator) ipOf(entry fields) netip.Addr {
	ip := text(properties(entry), "ipAddress")
	if ip == "" {
		ip = text(e.configOf(nicOf(entry)), "privateIPAddress")
	}
	addr, _ := netip.ParseAddr(ip)
	return addr.Unmap()
}

// configOf returns the properties of the IP configuration with this lower-cased ID, of a network
// interface or a scale set instance; nil if unknown.
func (e *Emulator) configOf(id string) fields {
	nic, config, _ := strings.Cut(id, "/"+strings.ToLower(ipConfigKind.collection)+"/")
	if agg := e.aggregates[nic]; agg != nil {
		list := objects(properties(agg.body), ipConfigKind.collection)
		if i := indexByName(list, config); i >= 0 {
			return properties(list[i])
		}
	}
	machine, _, _ := strings.Cut(id, "/networkinterfaces/")
	if agg := e.aggregates[machine]; agg != nil {
		for known, props := range memberConfigs(machine, properties(agg.body)) {
			if sameName(known, id) {
				return props
			}
		}
	}
	return nil
}

// leavePools removes a deleted load balancer's pools from network interfaces.
func (e *Emulator) leavePools(balancer resourceID) {
	below := balancer.rootKey() + "/"
	for _, agg := range e.sorted() {
		if agg.id.root != networkInterfaceKind {
			continue
		}
		changed := false
		configs := objects(properties(agg.body), ipConfigKind.collection)
		for i, c := range configs {
			had := objects(properties(c), nicPools)
			left := slices.DeleteFunc(slices.Clone(had), func(ref fields) bool { return strings.HasPrefix(strings.ToLower(text(ref, "id")), below) })
			if len(left) < len(had) {
				changed = true
				configs[i] = with(c, "properties", with(properties(c), nicPools, array(left)))
			}
		}
		if changed {
			agg.body = with(agg.body, "properties", with(properties(agg.body), ipConfigKind.collection, array(configs)))
			e.retag(agg)
		}
	}
}
