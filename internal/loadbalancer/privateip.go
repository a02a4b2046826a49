// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// PrivateIPTTL is how long an address remains reserved after its last use. It covers a recreated Service, a
// GitOps sync and a controller restart.
const PrivateIPTTL = time.Hour

// PrivateIPReservation reserves an address for a namespace.
type PrivateIPReservation struct {
	Namespace string
	// LoadBalancer has or had the address.
	LoadBalancer string
	// Expires is zero while the address is in use.
	Expires time.Time
}

// AddressKey identifies a requested private address by subnet and address. It is empty for a public
// frontend, and for a dynamic address.
func AddressKey(f lb.Frontend) string {
	if f.PublicIP != "" || !f.Static || !f.PrivateIP.IsValid() {
		return ""
	}
	return strings.ToLower(f.Subnet) + " " + f.PrivateIP.String()
}

func describeAddress(key string) string {
	subnet, ip, _ := strings.Cut(key, " ")
	return fmt.Sprintf("private address %s of subnet %s", ip, subnet[strings.LastIndex(subnet, "/")+1:])
}

// PrivateIPUsers are the namespaces that use an address, by its key.
type PrivateIPUsers map[string][]string

// FindPrivateIPUsers returns the users of a load balancer's private addresses. serviceOf returns the owning
// Service of a frontend or rule, or "".
func FindPrivateIPUsers(b lb.LoadBalancer, serviceOf func(name string) string) PrivateIPUsers {
	users, keys := PrivateIPUsers{}, map[string]string{}
	add := func(key, name string) {
		if key == "" {
			return
		}
		if namespace, _, known := strings.Cut(serviceOf(name), "/"); known && !slices.Contains(users[key], namespace) {
			users[key] = append(users[key], namespace)
		}
	}
	for _, f := range b.Frontends {
		f.Static = true // Key ignores dynamic addresses, which are in use as well
		if r, ok := b.RetainedAt(f); ok {
			users[AddressKey(f)] = append(users[AddressKey(f)], r.Namespace())
		}
		keys[strings.ToLower(f.Name)] = AddressKey(f)
		add(AddressKey(f), f.Name)
	}
	for _, r := range b.Rules {
		add(keys[strings.ToLower(r.Frontend)], r.Name)
	}
	return users
}

// PrivateIPRequest is the request of a Service.
type PrivateIPRequest struct {
	// Owner prefixes the Service's resource names.
	Owner, Service string
	Created        time.Time
	Keys           []string
}

func (p PrivateIPRequest) namespace() string {
	namespace, _, _ := strings.Cut(p.Service, "/")
	return namespace
}

// checkRequests skips addresses in use: the load balancer's plan rejects other namespaces there. Of two
// Services requesting a free address, the older one wins.
func checkRequests(record map[string]PrivateIPReservation, unreadable error, users PrivateIPUsers, requests []PrivateIPRequest, now time.Time) map[string]error {
	rejected, first := map[string]error{}, map[string]PrivateIPRequest{}
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b PrivateIPRequest) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Owner, b.Owner))
	})
	for _, w := range requests {
		for _, key := range w.Keys {
			if len(users[key]) > 0 {
				continue
			}
			if err := checkUse(record[key], unreadable, first[key], w, key, now); err != nil {
				rejected[w.Owner] = err
				break
			}
		}
		if rejected[w.Owner] != nil {
			continue
		}
		for _, key := range w.Keys {
			if first[key].Service == "" {
				first[key] = w
			}
		}
	}
	return rejected
}

// checkUse takes the older Service that gets the address in the same round, if any.
func checkUse(r PrivateIPReservation, unreadable error, older, w PrivateIPRequest, key string, now time.Time) error {
	switch {
	case unreadable != nil:
		return fmt.Errorf("%s is given to no Service that does not have it already: %w", describeAddress(key), unreadable)
	case r.isExpired(now) || r.Namespace == w.namespace():
	case r.Expires.IsZero():
		return fmt.Errorf("%s is reserved for namespace %s until %s after its last Service has left it. Choose another address",
			describeAddress(key), r.Namespace, PrivateIPTTL)
	default:
		return fmt.Errorf("%s is reserved for namespace %s, which used it last, until %s. Choose another address, or wait until then",
			describeAddress(key), r.Namespace, r.Expires.UTC().Format(time.RFC3339))
	}
	if older.Service != "" && older.namespace() != w.namespace() {
		return fmt.Errorf("%s is assigned to %s, which is older and requests it, too. Choose another address", describeAddress(key), service.DescribeOwner(older.Service))
	}
	return nil
}

func (r PrivateIPReservation) isExpired(now time.Time) bool {
	return r.Namespace == "" || !r.Expires.IsZero() && !r.Expires.After(now)
}

// loadBalancerState is the observed state plus pending writes.
type loadBalancerState struct {
	name  string
	users PrivateIPUsers
	// claims are the namespaces about to use an address.
	claims map[string]string
	// others are the cluster's other load balancers.
	others []string
}

// nextRecord removes the reservations that expire first above the limit.
func nextRecord(record map[string]PrivateIPReservation, s loadBalancerState, limit func(namespace string) int, now time.Time) map[string]PrivateIPReservation {
	next := maps.Clone(record)
	for key, r := range record {
		elsewhere := slices.ContainsFunc(s.others, func(name string) bool { return strings.EqualFold(name, r.LoadBalancer) })
		switch {
		case r.isExpired(now):
			delete(next, key)
		case r.Expires.IsZero() && !elsewhere:
			r.Expires = now.Add(PrivateIPTTL).UTC().Truncate(time.Second)
			next[key] = r
		}
	}
	for key, namespaces := range s.users {
		namespace := namespaces[0]
		if slices.Contains(namespaces, record[key].Namespace) {
			namespace = record[key].Namespace
		}
		next[key] = PrivateIPReservation{Namespace: namespace, LoadBalancer: strings.ToLower(s.name)}
	}
	for key, namespace := range s.claims {
		if len(s.users[key]) == 0 {
			next[key] = PrivateIPReservation{Namespace: namespace, LoadBalancer: strings.ToLower(s.name)}
		}
	}
	trimUnused(next, s.name, limit)
	return next
}

func trimUnused(record map[string]PrivateIPReservation, loadBalancer string, limit func(namespace string) int) {
	counts, unused := map[string]int{}, []string{}
	for key, r := range record {
		if strings.EqualFold(r.LoadBalancer, loadBalancer) {
			if counts[r.Namespace]++; !r.Expires.IsZero() {
				unused = append(unused, key)
			}
		}
	}
	slices.SortFunc(unused, func(a, b string) int {
		return cmp.Or(record[a].Expires.Compare(record[b].Expires), strings.Compare(a, b))
	})
	for _, key := range unused {
		if namespace := record[key].Namespace; counts[namespace] > limit(namespace) {
			counts[namespace]--
			delete(record, key)
		}
	}
}
