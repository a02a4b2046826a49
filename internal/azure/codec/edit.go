// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"slices"

	"weir.dev/weir/internal/lb"
)

// ErrOtherShape rejects a write with other interfaces or IP configurations than were read.
var ErrOtherShape = errors.New("it has other interfaces or IP configurations than were read")

const (
	keyInterfaces = "networkInterfaceConfigurations"
	keyPools      = "loadBalancerBackendAddressPools"
)

func setAllPools(profile *jsonObject, next []lb.InterfaceConfiguration) error {
	interfaces := objectList(profile, keyInterfaces)
	if len(interfaces) != len(next) {
		return ErrOtherShape
	}
	for i, configuration := range interfaces {
		if err := setPools(configuration, next[i]); err != nil {
			return err
		}
	}
	return nil
}

// setPools sets the pools of each IP configuration and retains unchanged references as they are.
func setPools(configuration *jsonObject, next lb.InterfaceConfiguration) error {
	ips := objectList(childObject(configuration, keyProperties), "ipConfigurations")
	if len(ips) != len(next.IPConfigurations) {
		return ErrOtherShape
	}
	for i, ip := range ips {
		if stringValue(ip, "name") != next.IPConfigurations[i].Name {
			return ErrOtherShape
		}
		properties := childObject(ip, keyProperties)
		old := objectList(properties, keyPools)
		ids := make([]string, len(old))
		for j, pool := range old {
			ids[j] = stringValue(pool, "id")
		}
		if slices.Equal(ids, next.IPConfigurations[i].Pools) {
			continue
		}
		if !ip.has(keyProperties) {
			return ErrOtherShape
		}
		pools := make([]*jsonObject, 0, len(next.IPConfigurations[i].Pools))
		for _, id := range next.IPConfigurations[i].Pools {
			if j := slices.Index(ids, id); j >= 0 {
				old[j].other = nil
				pools = append(pools, old[j])
			} else {
				pools = append(pools, newObject("id", id))
			}
		}
		properties.set(keyPools, pools)
	}
	return nil
}
