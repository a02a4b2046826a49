// SPDX-License-Identifier: Apache-2.0

// Package privateip reserves the private addresses that Services request for their namespaces: while
// they are in use, and for TTL afterwards, so that a Service can be recreated.
//
//	privateip.go  who may use an address, and how the record changes (pure)
//	keeper.go     reads and writes the record
package privateip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// TTL is how long an address stays reserved after its last Service has left it. It covers a recreated
// Service, a GitOps sync and a restart of the controller, and ends by itself, so that no namespace keeps
// addresses that it does not use.
const TTL = time.Hour

// Reservation is the namespace that an address is reserved for.
type Reservation struct {
	Namespace string
	// LoadBalancer is the name of the load balancer that has the address, or had it last.
	LoadBalancer string
	// Expires is zero while the address is in use.
	Expires time.Time
}

// Key returns the key of the private address that a frontend requests: its subnet and the address. It is
// empty for a public frontend, and for one with an address that Azure chose.
func Key(f lb.Frontend) string {
	if f.PublicIP != "" || !f.Static || !f.PrivateIP.IsValid() {
		return ""
	}
	return strings.ToLower(f.Subnet) + " " + f.PrivateIP.String()
}

// describe returns a text for an address.
func describe(key string) string {
	subnet, ip, _ := strings.Cut(key, " ")
	return fmt.Sprintf("private address %s of subnet %s", ip, subnet[strings.LastIndex(subnet, "/")+1:])
}

// Users are the namespaces of the Services that use an address, by its key.
type Users map[string][]string

// UsersOf returns the users of the private addresses of a load balancer. serviceOf returns the Service that a
// frontend or a rule belongs to; empty if none is known.
func UsersOf(b lb.LoadBalancer, serviceOf func(name string) string) Users {
	users, keys := Users{}, map[string]string{}
	add := func(key, name string) {
		if key == "" {
			return
		}
		if namespace, _, known := strings.Cut(serviceOf(name), "/"); known && !slices.Contains(users[key], namespace) {
			users[key] = append(users[key], namespace)
		}
	}
	for _, f := range b.Frontends {
		f.Static = true // Key ignores addresses that Azure chose, which are in use as well
		keys[strings.ToLower(f.Name)] = Key(f)
		add(Key(f), f.Name)
	}
	for _, r := range b.Rules {
		add(keys[strings.ToLower(r.Frontend)], r.Name)
	}
	return users
}

// Want is the addresses that a Service requests, by their keys.
type Want struct {
	// Owner is the prefix of the names of the Service's resources.
	Owner, Service string
	Created        time.Time
	Keys           []string
}

func (w Want) namespace() string {
	namespace, _, _ := strings.Cut(w.Service, "/")
	return namespace
}

// check returns the Services that may not have an address that they request, by owner. An address in use is
// left to the plan of the load balancer, which refuses newcomers of other namespaces. Of two Services that
// request an address that is not reserved, the older one gets it.
func check(record map[string]Reservation, unreadable error, users Users, wants []Want, now time.Time) map[string]error {
	refused, first := map[string]error{}, map[string]Want{}
	wants = slices.SortedStableFunc(slices.Values(wants), func(a, b Want) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Owner, b.Owner))
	})
	for _, w := range wants {
		for _, key := range w.Keys {
			if len(users[key]) > 0 {
				continue
			}
			if err := mayUse(record[key], unreadable, first[key], w, key, now); err != nil {
				refused[w.Owner] = err
				break
			}
		}
		if refused[w.Owner] != nil {
			continue
		}
		for _, key := range w.Keys {
			if first[key].Service == "" {
				first[key] = w
			}
		}
	}
	return refused
}

// mayUse returns why a Service may not have an address that is not in use. older is the Service that gets it in
// the same round; zero if there is none.
func mayUse(r Reservation, unreadable error, older, w Want, key string, now time.Time) error {
	switch {
	case unreadable != nil:
		return fmt.Errorf("%s is given to no Service that does not have it already: %w", describe(key), unreadable)
	case r.expired(now) || r.Namespace == w.namespace():
	case r.Expires.IsZero():
		return fmt.Errorf("%s is reserved for namespace %s until %s after its last Service has left it. Choose another address",
			describe(key), r.Namespace, TTL)
	default:
		return fmt.Errorf("%s is reserved for namespace %s, which used it last, until %s. Choose another address, or wait until then",
			describe(key), r.Namespace, r.Expires.UTC().Format(time.RFC3339))
	}
	if older.Service != "" && older.namespace() != w.namespace() {
		return fmt.Errorf("%s is assigned to Service %s, which is older and requests it, too. Choose another address", describe(key), older.Service)
	}
	return nil
}

// expired reports whether there is no reservation any more.
func (r Reservation) expired(now time.Time) bool {
	return r.Namespace == "" || !r.Expires.IsZero() && !r.Expires.After(now)
}

// state is what a load balancer shows, and what is about to be written to it.
type state struct {
	on    string
	users Users
	// claims are the namespaces of Services that are about to use an address, by its key.
	claims map[string]string
	// others are the names of the cluster's other load balancers.
	others []string
}

// next returns the record that follows from the state of a load balancer. limit bounds the addresses of a
// namespace on it, in use or not: the reservations that expire first are removed.
func next(record map[string]Reservation, s state, limit func(namespace string) int, now time.Time) map[string]Reservation {
	all := maps.Clone(record)
	for key, r := range record {
		elsewhere := slices.ContainsFunc(s.others, func(name string) bool { return strings.EqualFold(name, r.LoadBalancer) })
		switch {
		case r.expired(now):
			delete(all, key)
		case r.Expires.IsZero() && !elsewhere:
			r.Expires = now.Add(TTL).UTC().Truncate(time.Second)
			all[key] = r
		}
	}
	for key, namespaces := range s.users {
		namespace := namespaces[0]
		if slices.Contains(namespaces, record[key].Namespace) {
			namespace = record[key].Namespace
		}
		all[key] = Reservation{Namespace: namespace, LoadBalancer: strings.ToLower(s.on)}
	}
	for key, namespace := range s.claims {
		if len(s.users[key]) == 0 {
			all[key] = Reservation{Namespace: namespace, LoadBalancer: strings.ToLower(s.on)}
		}
	}
	trim(all, s.on, limit)
	return all
}

// trim removes the reservations of unused addresses that exceed the limit of a namespace on a load balancer.
func trim(record map[string]Reservation, on string, limit func(namespace string) int) {
	has, unused := map[string]int{}, []string{}
	for key, r := range record {
		if strings.EqualFold(r.LoadBalancer, on) {
			if has[r.Namespace]++; !r.Expires.IsZero() {
				unused = append(unused, key)
			}
		}
	}
	slices.SortFunc(unused, func(a, b string) int {
		return cmp.Or(record[a].Expires.Compare(record[b].Expires), strings.Compare(a, b))
	})
	for _, key := range unused {
		if namespace := record[key].Namespace; has[namespace] > limit(namespace) {
			has[namespace]--
			delete(record, key)
		}
	}
}
