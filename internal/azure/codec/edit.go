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

func setAllPools(profile object, next []lb.InterfaceConfiguration) error {
	interfaces := objectList(profile[keyInterfaces])
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
func setPools(configuration object, next lb.InterfaceConfiguration) error {
	ips := objectList(childObject(configuration, "properties")["ipConfigurations"])
	if len(ips) != len(next.IPConfigurations) {
		return ErrOtherShape
	}
	for i, ip := range ips {
		if name, _ := ip["name"].(string); name != next.IPConfigurations[i].Name {
			return ErrOtherShape
		}
		properties := childObject(ip, "properties")
		was := objectList(properties[keyPools])
		ids := make([]string, len(was))
		for j, pool := range was {
			ids[j], _ = pool["id"].(string)
		}
		if slices.Equal(ids, next.IPConfigurations[i].Pools) {
			continue
		}
		if ip["properties"] == nil {
			return ErrOtherShape
		}
		pools := make([]any, 0, len(next.IPConfigurations[i].Pools))
		for _, id := range next.IPConfigurations[i].Pools {
			if j := slices.Index(ids, id); j >= 0 {
				pools = append(pools, was[j])
			} else {
				pools = append(pools, object{"id": id})
			}
		}
		properties[keyPools] = pools
	}
	return nil
}
