// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"weir.dev/weir/internal/lb"
)

// The bodies of network interfaces, scale sets and instances are edited as JSON: what is no pool of
// an IP configuration is sent back as it was, also what the SDK has no word for.

// ErrNotRead is of a write of what was not read before: what else it holds would be lost.
var ErrNotRead = errors.New("it was not read before, so what else it holds would be lost")

// ErrOtherShape is of a write that names other interfaces or IP configurations than were read.
var ErrOtherShape = errors.New("it has other interfaces or IP configurations than were read")

type object = map[string]any

const (
	keyInterfaces = "networkInterfaceConfigurations"
	keyPools      = "loadBalancerBackendAddressPools"
)

// read returns what an Origin was read as, anew each time, so that it may be changed. Numbers stay as
// they were written.
func read(origin any) (object, error) {
	shown, ok := origin.(json.RawMessage)
	if !ok {
		return nil, ErrNotRead
	}
	var body object
	dec := json.NewDecoder(bytes.NewReader(shown))
	dec.UseNumber()
	err := dec.Decode(&body)
	return body, err
}

// setAllPools gives each interface of a profile its pools.
func setAllPools(profile object, next []lb.InterfaceConfiguration) error {
	interfaces := list(profile[keyInterfaces])
	if len(interfaces) != len(next) {
		return ErrOtherShape
	}
	for i, shown := range interfaces {
		if err := setPools(shown, next[i]); err != nil {
			return err
		}
	}
	return nil
}

// setPools gives each IP configuration of an interface its pools. One that is in them already is
// left as it is, and so is each pool that it stays in.
func setPools(shown object, next lb.InterfaceConfiguration) error {
	ips := list(at(shown, "properties")["ipConfigurations"])
	if len(ips) != len(next.IPConfigurations) {
		return ErrOtherShape
	}
	for i, ip := range ips {
		if name, _ := ip["name"].(string); name != next.IPConfigurations[i].Name {
			return ErrOtherShape
		}
		properties := at(ip, "properties")
		was := list(properties[keyPools])
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

// at returns an object within an object; an empty one that is part of nothing if there is none.
func at(o object, key string) object {
	if inner, ok := o[key].(object); ok {
		return inner
	}
	return object{}
}

// list returns the objects of an array, an empty one for what is no object.
func list(v any) []object {
	array, _ := v.([]any)
	all := make([]object, len(array))
	for i, item := range array {
		if all[i], _ = item.(object); all[i] == nil {
			all[i] = object{}
		}
	}
	return all
}

func without(o object, keys ...string) {
	for _, key := range keys {
		delete(o, key)
	}
}
