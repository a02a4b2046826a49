// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb/behavior"
)

// A pool shows an address for each network interface IP configuration in it. The interfaces decide
// on membership; a write of the pool only sets admin states.

func nicIPConfigID(entry fields) string {
	return referenceID(propertyFields(entry), "networkInterfaceIPConfiguration")
}

func poolEntries(from *referenceIndex, pool resourceID, body fields) []fields {
	entries := objectList(propertyFields(body), addresses)
	nics := from.poolNICs(pool, body)
	if len(nics) == 0 {
		return entries
	}
	stored := map[string]bool{}
	for _, a := range entries {
		stored[nicIPConfigID(a)] = true
	}
	for _, id := range nics {
		if !stored[strings.ToLower(id)] {
			entries = append(entries, fields{
				"name":       nicEntryName(id),
				"properties": fields{"networkInterfaceIPConfiguration": fields{"id": id}},
			})
		}
	}
	return entries
}

// nicEntryName: resource group and names for a network interface, a GUID for a scale set's
// (observed).
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

// storePoolEntries: an address with only the name of an interface's address refers to it, and an omitted
// one loses its admin state.
func (e *Emulator) storePoolEntries(pool resourceID, before, body fields) fields {
	nics := e.references().poolNICs(pool, body)
	if len(nics) == 0 {
		return body
	}
	list := objectList(propertyFields(body), addresses)
	for _, known := range poolEntries(e.references(), pool, before) {
		id := nicIPConfigID(known)
		if !slices.ContainsFunc(nics, func(nic string) bool { return sameName(nic, id) }) ||
			slices.ContainsFunc(list, func(a fields) bool { return nicIPConfigID(a) == id }) {
			continue
		}
		target := fields{"networkInterfaceIPConfiguration": objectField(propertyFields(known), "networkInterfaceIPConfiguration")}
		i := indexByName(list, stringField(known, "name"))
		if i < 0 || stringField(propertyFields(list[i]), "ipAddress") != "" || isNIC(list[i]) || isFrontend(list[i]) {
			list = append(list, fields{"name": known["name"], "properties": target})
			continue
		}
		list[i] = withField(list[i], "properties", withDefaults(propertyFields(list[i]), target))
	}
	if e.opts.Behavior.InterfaceAdminState == behavior.Ignored {
		list = withAdminStates(list, poolEntries(e.references(), pool, before))
	}
	return withField(body, "properties", withField(propertyFields(body), addresses, toArray(list)))
}

func (e *Emulator) storeAllPoolEntries(balancer resourceID, before, root fields) fields {
	list, old := objectList(propertyFields(root), pools), newNameIndex(objectList(propertyFields(before), pools))
	for i, pool := range list {
		before, _ := lookUpName(old, stringField(pool, "name"))
		id := balancer.withChild(poolKind, stringField(pool, "name"))
		entries := inlineAddresses(e.opts.Behavior, before == nil, poolEntries(e.references(), id, before), objectList(propertyFields(pool), addresses))
		props := withField(propertyFields(pool), addresses, toArray(entries))
		if network, ok := propertyFields(before)["virtualNetwork"]; ok && e.opts.Behavior.UpdateAddresses == behavior.Ignored {
			props["virtualNetwork"] = network // belongs to the addresses
		}
		pool = withField(pool, "properties", props)
		list[i] = e.storePoolEntries(id, before, pool)
	}
	return withField(root, "properties", withField(propertyFields(root), pools, toArray(list)))
}

// dropLeftEntries drops stored entries: an IP configuration that joins again has no admin state.
func (e *Emulator) dropLeftEntries(before, got *referenceIndex) {
	if before == nil {
		return
	}
	for _, pool := range changedKeys(before.pool, got.pool) {
		for _, nic := range before.pool[pool] {
			if !slices.Contains(got.pool[pool], nic) {
				e.dropEntry(pool, strings.ToLower(nic))
			}
		}
	}
}

func (e *Emulator) dropEntry(pool, nic string) {
	id, err := parseID(pool)
	if err != nil {
		return
	}
	agg := e.aggregates[id.rootKey()]
	if agg == nil {
		return
	}
	body := findChild(agg.body, id)
	if list := objectList(propertyFields(body), addresses); slices.ContainsFunc(list, func(a fields) bool { return nicIPConfigID(a) == nic }) {
		list = slices.DeleteFunc(list, func(a fields) bool { return nicIPConfigID(a) == nic })
		agg.body = withChildBody(agg.body, id, withField(body, "properties", withField(propertyFields(body), addresses, toArray(list))))
	}
}

func (e *Emulator) entryIP(entry fields) netip.Addr {
	ip := stringField(propertyFields(entry), "ipAddress")
	if ip == "" {
		ip = stringField(e.findIPConfig(nicIPConfigID(entry)), "privateIPAddress")
	}
	addr, _ := netip.ParseAddr(ip)
	return addr.Unmap()
}

func (e *Emulator) findIPConfig(id string) fields {
	nic, config, _ := strings.Cut(id, "/"+strings.ToLower(ipConfigKind.collection)+"/")
	if agg := e.aggregates[nic]; agg != nil {
		list := objectList(propertyFields(agg.body), ipConfigKind.collection)
		if i := indexByName(list, config); i >= 0 {
			return propertyFields(list[i])
		}
	}
	machine, _, _ := strings.Cut(id, "/networkinterfaces/")
	if agg := e.aggregates[machine]; agg != nil {
		for known, props := range instanceIPConfigs(machine, propertyFields(agg.body)) {
			if sameName(known, id) {
				return props
			}
		}
	}
	return nil
}

func (e *Emulator) removePoolReferences(balancer resourceID) {
	below := balancer.rootKey() + "/"
	for _, agg := range e.sortedAggregates() {
		if agg.id.root != networkInterfaceKind {
			continue
		}
		changed := false
		configs := objectList(propertyFields(agg.body), ipConfigKind.collection)
		for i, c := range configs {
			before := objectList(propertyFields(c), nicPools)
			remaining := slices.DeleteFunc(slices.Clone(before), func(ref fields) bool { return strings.HasPrefix(strings.ToLower(stringField(ref, "id")), below) })
			if len(remaining) < len(before) {
				changed = true
				configs[i] = withField(c, "properties", withField(propertyFields(c), nicPools, toArray(remaining)))
			}
		}
		if changed {
			agg.body = withField(agg.body, "properties", withField(propertyFields(agg.body), ipConfigKind.collection, toArray(configs)))
			e.renewEtag(agg)
		}
	}
}
