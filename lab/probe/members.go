// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"slices"
	"strings"
)

const (
	addressesKey = "loadBalancerBackendAddresses"
	poolsKey     = "backendAddressPools"
	stateKey     = "adminState"
	down         = "Down"
	none         = "None"
)

type member struct{ name, ip, state string }

func stringValue(o Object, key string) string { s, _ := o[key].(string); return s }

func childObject(o Object, key string) Object { inner, _ := o[key].(Object); return inner }

func propertiesOf(o Object) Object { return childObject(o, "properties") }

func objectList(o Object, key string) []Object {
	list, _ := o[key].([]any)
	var objects []Object
	for _, item := range list {
		if inner, ok := item.(Object); ok {
			objects = append(objects, inner)
		}
	}
	return objects
}

func toArray(list []Object) []any {
	values := make([]any, len(list))
	for i, o := range list {
		values[i] = o
	}
	return values
}

func withValue(o Object, key string, value any) Object {
	next := maps.Clone(o)
	if next == nil {
		next = Object{}
	}
	next[key] = value
	return next
}

func withoutKeys(o Object, keys ...string) Object {
	next := maps.Clone(o)
	for _, key := range keys {
		delete(next, key)
	}
	return next
}

func toEntries(list []member) []any {
	values := make([]any, len(list))
	for i, m := range list {
		p := Object{"ipAddress": m.ip}
		if m.state != "" {
			p[stateKey] = m.state
		}
		values[i] = Object{"name": m.name, "properties": p}
	}
	return values
}

// poolMembers sorts by IP. A missing admin state counts as None.
func poolMembers(pool Object) []member {
	var members []member
	for _, e := range objectList(propertiesOf(pool), addressesKey) {
		m := member{stringValue(e, "name"), stringValue(propertiesOf(e), "ipAddress"), stringValue(propertiesOf(e), stateKey)}
		if m.state == "" {
			m.state = none
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.ip, b.ip) })
	return members
}

func memberIPs(list []member) []string {
	ips := make([]string, len(list))
	for i, m := range list {
		ips[i] = m.ip
	}
	slices.Sort(ips)
	return ips
}

func memberState(list []member, ip string) string {
	for _, m := range list {
		if m.ip == ip {
			return m.state
		}
	}
	return ""
}

func findPool(balancer Object, name string) Object {
	for _, p := range objectList(propertiesOf(balancer), poolsKey) {
		if strings.EqualFold(stringValue(p, "name"), name) {
			return p
		}
	}
	return nil
}

// withPool replaces or adds a pool.
func withPool(balancer Object, name string, pool Object) Object {
	list := objectList(propertiesOf(balancer), poolsKey)
	i := slices.IndexFunc(list, func(p Object) bool { return strings.EqualFold(stringValue(p, "name"), name) })
	if i < 0 {
		list = append(list, withValue(pool, "name", name))
	} else {
		list = slices.Clone(list)
		list[i] = pool
	}
	return withValue(balancer, "properties", withValue(propertiesOf(balancer), poolsKey, toArray(list)))
}

func withMembers(pool Object, list []member) Object {
	return withValue(pool, "properties", withValue(propertiesOf(pool), addressesKey, toEntries(list)))
}

// Read-only properties.
var (
	serverKeys    = []string{"etag", "type", "resourceGuid", "provisioningState"}
	referenceKeys = []string{"loadBalancingRules", "outboundRules", "outboundRule", "inboundNatRules", "inboundNatPools", "backendIPConfigurations"}
)

// withoutReadOnly removes read-only properties; writing the result changes nothing.
func withoutReadOnly(resource Object) Object {
	next := withoutKeys(resource, append([]string{"name"}, serverKeys...)...)
	p := withoutKeys(propertiesOf(resource), serverKeys...)
	for key := range p {
		if list := objectList(p, key); list != nil && key != addressesKey {
			for i, child := range list {
				list[i] = childWithoutReadOnly(child)
			}
			p[key] = toArray(list)
		}
	}
	next["properties"] = p
	return next
}

func childWithoutReadOnly(resource Object) Object {
	next := withoutKeys(resource, serverKeys...)
	if p := propertiesOf(resource); p != nil {
		p = withoutKeys(withoutKeys(p, serverKeys...), referenceKeys...)
		if list := objectList(p, addressesKey); list != nil {
			for i, address := range list {
				list[i] = withValue(withoutKeys(address, "id", "etag", "type"), "properties", withoutKeys(propertiesOf(address), serverKeys...))
			}
			p[addressesKey] = toArray(list)
		}
		next["properties"] = p
	}
	return next
}
