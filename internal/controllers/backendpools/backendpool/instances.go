// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// instanceSeparator separates scale set and instance ID in a machine key.
const instanceSeparator = "/virtualmachines/"

// ParseInstances returns the recorded addresses of instances by machine; nil if none.
func ParseInstances(written []v1alpha1.WrittenInstances) map[string]netip.Addr {
	var addresses map[string]netip.Addr
	for _, set := range written {
		for id, address := range set.Addresses {
			if ip, err := netip.ParseAddr(address); err == nil {
				if addresses == nil {
					addresses = map[string]netip.Addr{}
				}
				addresses[set.ScaleSet+instanceSeparator+id] = ip
			}
		}
	}
	return addresses
}

// FormatInstances converts addresses by machine to their status entries.
func FormatInstances(instances map[string]netip.Addr) []v1alpha1.WrittenInstances {
	sets := map[string]map[string]string{}
	for machine, ip := range instances {
		at := strings.LastIndex(machine, instanceSeparator)
		if at < 0 {
			continue
		}
		set, id := machine[:at], machine[at+len(instanceSeparator):]
		if sets[set] == nil {
			sets[set] = map[string]string{}
		}
		sets[set][metadata.Intern(id)] = metadata.Intern(ip.String())
	}
	var written []v1alpha1.WrittenInstances
	for set, addresses := range sets {
		written = append(written, v1alpha1.WrittenInstances{ScaleSet: metadata.Intern(set), Addresses: addresses})
	}
	slices.SortFunc(written, func(a, b v1alpha1.WrittenInstances) int { return cmp.Compare(a.ScaleSet, b.ScaleSet) })
	return written
}

func mergeInstances(a, b []v1alpha1.WrittenInstances) []v1alpha1.WrittenInstances {
	other := ParseInstances(b)
	if len(other) == 0 {
		return a
	}
	instances := ParseInstances(a)
	if instances == nil {
		instances = map[string]netip.Addr{}
	}
	for machine, ip := range other {
		if _, ok := instances[machine]; !ok {
			instances[machine] = ip
		}
	}
	if maps.Equal(instances, ParseInstances(a)) {
		return a
	}
	return FormatInstances(instances)
}
