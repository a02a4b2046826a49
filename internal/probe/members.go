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

func text(o Object, key string) string { s, _ := o[key].(string); return s }

func object(o Object, key string) Object { inner, _ := o[key].(Object); return inner }

func properties(o Object) Object { return object(o, "properties") }

func objects(o Object, key string) []Object {
	list, _ := o[key].([]any)
	var all []Object
	for _, item := range list {
		if inner, ok := item.(Object); ok {
			all = append(all, inner)
		}
	}
	return all
}

func array(list []Object) []any {
	all := make([]any, len(list))
	for i, o := range list {
		all[i] = o
	}
	return all
}

func with(o Object, key string, value any) Object {
	next := maps.Clone(o)
	if next == nil {
		next = Object{}
	}
	next[key] = value
	return next
}

func without(o Object, keys ...string) Object {
	next := maps.Clone(o)
	for _, key := range keys {
		delete(next, key)
	}
	return next
}

func entries(list []member) []any {
	all := make([]any, len(list))
	for i, m := range list {
		p := Object{"ipAddress": m.ip}
		if m.state != "" {
			p[stateKey] = m.state
		}
		all[i] = Object{"name": m.name, "properties": p}
	}
	return all
}

// members sorts by IP. A missing admin state counts as None.
func members(pool Object) []member {
	var all []member
	for _, e := range objects(properties(pool), addressesKey) {
		m := member{text(e, "name"), text(properties(e), "ipAddress"), text(properties(e), stateKey)}
		if m.state == "" {
			m.state = none
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.ip, b.ip) })
	return all
}

func ips(list []member) []string {
	all := make([]string, len(list))
	for i, m := range list {
		all[i] = m.ip
	}
	slices.Sort(all)
	return all
}

func stateOf(list []member, ip string) string {
	for _, m := range list {
		if m.ip == ip {
			return m.state
		}
	}
	return ""
}

func poolOf(balancer Object, name string) Object {
	for _, p := range objects(properties(balancer), poolsKey) {
		if strings.EqualFold(text(p, "name"), name) {
			return p
		}
	}
	return nil
}

// withPool replaces or adds a pool.
func withPool(balancer Object, name string, pool Object) Object {
	list := objects(properties(balancer), poolsKey)
	i := slices.IndexFunc(list, func(p Object) bool { return strings.EqualFold(text(p, "name"), name) })
	if i < 0 {
		list = append(list, with(pool, "name", name))
	} else {
		list = slices.Clone(list)
		list[i] = pool
	}
	return with(balancer, "properties", with(properties(balancer), poolsKey, array(list)))
}

func withMembers(pool Object, list []member) Object {
	return with(pool, "properties", with(properties(pool), addressesKey, entries(list)))
}

// Read-only properties.
var (
	serverKeys   = []string{"etag", "type", "resourceGuid", "provisioningState"}
	backReferred = []string{"loadBalancingRules", "outboundRules", "outboundRule", "inboundNatRules", "inboundNatPools", "backendIPConfigurations"}
)

// sendable removes read-only properties; writing the result changes nothing.
func sendable(resource Object) Object {
	next := without(resource, append([]string{"name"}, serverKeys...)...)
	p := without(properties(resource), serverKeys...)
	for key := range p {
		if list := objects(p, key); list != nil && key != addressesKey {
			for i, child := range list {
				list[i] = sendableChild(child)
			}
			p[key] = array(list)
		}
	}
	next["properties"] = p
	return next
}

func sendableChild(resource Object) Object {
	next := without(resource, serverKeys...)
	if p := properties(resource); p != nil {
		p = without(without(p, serverKeys...), backReferred...)
		if list := objects(p, addressesKey); list != nil {
			for i, address := range list {
				list[i] = with(without(address, "id", "etag", "type"), "properties", without(properties(address), serverKeys...))
			}
			p[addressesKey] = array(list)
		}
		next["properties"] = p
	}
	return next
}
