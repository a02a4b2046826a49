// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
)

// atlas is what is known of the cluster's load balancers: what Azure showed last of each,
// and which Services were placed where since.
type atlas struct {
	// reading is held across the one list that everything begins with, which takes time.
	reading chan struct{}

	mu     sync.Mutex // guards all below
	read   bool
	shown  map[string]lb.LoadBalancer // by name in lower case
	placed map[string]spot            // by Service
	nodes  map[netip.Addr]string      // the configuration of each node at the start
}

// spot is where a Service is, by name in lower case, and how many rules it has at the first
// of these.
type spot struct {
	at    []string
	owner string
	rules int
}

// saw notes what Azure shows of a load balancer.
func (a *atlas) saw(balancer lb.LoadBalancer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sawLocked(balancer)
}

func (a *atlas) sawLocked(balancer lb.LoadBalancer) {
	if a.shown == nil {
		a.shown = map[string]lb.LoadBalancer{}
	}
	name := strings.ToLower(balancer.ID.Name)
	if balancer.Etag == "" {
		delete(a.shown, name)
		return
	}
	balancer.Origin, balancer.Pools, balancer.Probes = nil, nil, nil // not asked for
	a.shown[name] = balancer
}

// put notes where a Service is.
func (a *atlas) put(key string, s spot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.putLocked(key, s)
}

func (a *atlas) putLocked(key string, s spot) {
	if a.placed == nil {
		a.placed = map[string]spot{}
	}
	a.placed[key] = s
}

func lower(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strings.ToLower(name)
	}
	return all
}

// remove forgets where a Service is.
func (a *atlas) remove(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.placed, key)
}

// elsewhere are the owners that are known to be on another load balancer than this one.
func (a *atlas) elsewhere(name string) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	owners := map[string]bool{}
	for _, s := range a.placed {
		if !containsFold(s.at, name) {
			owners[s.owner] = true
		}
	}
	return owners
}

// holding are the load balancers that show something of an owner.
func (a *atlas) holding(owner string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var names []string
	for _, balancer := range a.shown {
		has := slices.ContainsFunc(balancer.Frontends, func(f lb.Frontend) bool { return hasPrefixFold(f.Name, owner) }) ||
			slices.ContainsFunc(balancer.Rules, func(r lb.Rule) bool { return hasPrefixFold(r.Name, owner) })
		if has {
			names = append(names, balancer.ID.Name)
		}
	}
	slices.Sort(names)
	return names
}

// having is the load balancer that has a public IP, or a private address of a subnet.
func (a *atlas) having(publicIP, subnet string, ip netip.Addr) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, balancer := range a.shown {
		for _, f := range balancer.Frontends {
			if publicIP != "" && equalFold(f.PublicIP, publicIP) || ip.IsValid() && f.PrivateIP == ip && equalFold(f.Subnet, subnet) {
				return balancer.ID.Name
			}
		}
	}
	return ""
}
