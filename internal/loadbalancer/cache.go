// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// stateCache caches the last observed state of the cluster's load balancers and where Services were placed
// since.
type stateCache struct {
	listLock chan struct{}

	mu        sync.Mutex // guards the fields below
	read      bool
	observed  map[string]lb.LoadBalancer // by lower-case name
	byIP      map[string]bool            // those with addresses in a pool, by lower-case name
	byService map[string]placement
	nodes     map[string]string // configuration of each node at startup

	machines usageCounter // has its own lock
	members  memberKinds  // has its own lock
	settings service.Settings

	// healthPorts has lb.LoadBalancer.HealthPorts of each pool by lower-case name of the load balancer.
	healthPorts map[string]map[lb.PoolKey]int32
	// onHealthPorts is called with the pools of changed health ports. It must neither block nor call the cache.
	onHealthPorts func([]lb.PoolID)
}

// memberKinds has the kinds of members of each load balancer, as last observed. Its methods are safe for concurrent use.
type memberKinds struct {
	mu     sync.Mutex
	byName map[string]observedKinds // in lower case
}

// observedKinds are the kind of members in the pools of all nodes, and the one that the pools of Services imply for them.
type observedKinds struct{ nodes, implied service.MemberKind }

func (k *memberKinds) recordState(set service.Settings, balancer lb.LoadBalancer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byName == nil {
		k.byName = map[string]observedKinds{}
	}
	name := strings.ToLower(balancer.ID.Name)
	if delete(k.byName, name); balancer.Etag != "" {
		k.byName[name] = observedKinds{set.NodeMembers(balancer.Pools), set.ImpliedMembers(balancer)}
	}
}

// list returns the kinds of a load balancer, then those of the others by name: their pools of all nodes first.
func (k *memberKinds) list(name string) (own observedKinds, others []service.MemberKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	own = k.byName[strings.ToLower(name)]
	names := slices.Sorted(maps.Keys(k.byName))
	for _, other := range names {
		others = append(others, k.byName[other].nodes)
	}
	for _, other := range names {
		others = append(others, k.byName[other].implied)
	}
	return own, others
}

// placement is where a Service is, by lower-case name, and how many rules and frontends it has at the first of
// these.
type placement struct {
	at               []string
	owner            string
	rules, frontends int
}

func (c *stateCache) recordState(balancer lb.LoadBalancer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordStateLocked(balancer)
}

func (c *stateCache) recordStateLocked(balancer lb.LoadBalancer) {
	if c.observed == nil {
		c.observed, c.byIP = map[string]lb.LoadBalancer{}, map[string]bool{}
	}
	c.machines.RecordState(balancer)
	c.members.recordState(c.settings, balancer)
	c.recordHealthPortsLocked(balancer)
	name := strings.ToLower(balancer.ID.Name)
	if balancer.Etag == "" {
		delete(c.observed, name)
		return
	}
	c.byIP[name] = slices.ContainsFunc(balancer.Pools, func(pool lb.Pool) bool { return !pool.NIC && len(pool.Addresses) > 0 })
	balancer.Origin, balancer.Pools, balancer.Probes = nil, nil, nil
	c.observed[name] = balancer
}

func (c *stateCache) recordHealthPortsLocked(balancer lb.LoadBalancer) {
	if c.healthPorts == nil {
		c.healthPorts = map[string]map[lb.PoolKey]int32{}
	}
	name := strings.ToLower(balancer.ID.Name)
	before, known := c.healthPorts[name]
	current, ports := make(map[lb.PoolKey]int32, len(before)), balancer.HealthPorts()
	var changed []lb.PoolID
	for _, pool := range balancer.Pools {
		key := pool.ID.Key()
		current[key] = ports[strings.ToLower(pool.ID.Name)]
		if port, ok := before[key]; !known || !ok || port != current[key] {
			changed = append(changed, pool.ID)
		}
	}
	if c.healthPorts[name] = current; len(changed) > 0 && c.onHealthPorts != nil {
		c.onHealthPorts(changed)
	}
}

// HealthPort returns the port that the probes of all rules of a pool request by HTTP, as last observed, or 0. known is
// false before the load balancer was read.
func (b *LoadBalancers) HealthPort(pool lb.PoolID) (port int32, known bool) {
	name := strings.ToLower(pool.LoadBalancer.Name)
	if !containsFold(b.cfg.loadBalancerNames(), name) || pool.LoadBalancer.Key() != b.ID(name).Key() {
		return 0, true
	}
	b.cache.mu.Lock()
	defer b.cache.mu.Unlock()
	ports, known := b.cache.healthPorts[name]
	return ports[pool.Key()], known || b.cache.read
}

// observedLocked returns the last observed load balancer; false if unknown. A load balancer that does not exist
// has no etag.
func (c *stateCache) observedLocked(name string) (observed lb.LoadBalancer, known bool) {
	observed, exists := c.observed[strings.ToLower(name)]
	if observed.ID.Name == "" {
		observed.ID.Name = name
	}
	return observed, exists || c.read
}

func (c *stateCache) latestState(name string) (observed lb.LoadBalancer, byAddress bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name = strings.ToLower(name)
	return c.observed[name], c.byIP[name]
}

// usesInterfaces reports whether nodes are members of a load balancer's pools by their network interfaces: as last
// observed, then as its BackendPools add them, then as on the cluster's other load balancers.
func (b *LoadBalancers) usesInterfaces(name string) bool {
	own, others := b.cache.members.list(name)
	kinds := append([]service.MemberKind{own.nodes}, b.backendPoolKinds(name)...)
	return b.cfg.UsesInterfaces(append(append(kinds, own.implied), others...)...)
}

// backendPoolKinds returns the kinds of members that the BackendPools of a load balancer add to the pools of all nodes.
func (b *LoadBalancers) backendPoolKinds(name string) (kinds []service.MemberKind) {
	for _, pool := range b.cfg.SharedPools() {
		kinds = append(kinds, b.cfg.Cluster.MemberKind(lb.PoolID{LoadBalancer: b.ID(name), Name: pool}))
	}
	return kinds
}

// ListUsages returns how much of Azure's limits the load balancers, their Private Link Services and the security group use,
// as last observed.
func (b *LoadBalancers) ListUsages() usageList {
	s := usageState{MaxRules: b.cfg.MaxRules, MaxLinks: b.cfg.MaxPrivateLinks}
	if b.links != nil {
		s.Links = b.links.ListObserved()
	}
	if b.group != nil {
		s.Groups = b.group.ListObserved()
	}
	return b.cache.machines.ListUsages(s, b.usesInterfaces)
}

func (c *stateCache) setPlacement(key string, s placement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(key, s)
}

func (c *stateCache) putLocked(key string, s placement) {
	if c.byService == nil {
		c.byService = map[string]placement{}
	}
	c.byService[key] = s
}

func lowerCase(names []string) []string {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = strings.ToLower(name)
	}
	return values
}

func (c *stateCache) removePlacement(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byService, key)
}

func (c *stateCache) ownersElsewhere(name string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := map[string]bool{}
	for _, s := range c.byService {
		if !containsFold(s.at, name) {
			owners[s.owner] = true
		}
	}
	return owners
}

func (c *stateCache) ownersAt(name string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := map[string]bool{}
	for _, s := range c.byService {
		if containsFold(s.at, name) {
			owners[s.owner] = true
		}
	}
	return owners
}

func (c *stateCache) loadBalancersOf(owner string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, balancer := range c.observed {
		isUsed := slices.ContainsFunc(balancer.Frontends, func(f lb.Frontend) bool { return hasPrefixFold(f.Name, owner) }) ||
			slices.ContainsFunc(balancer.Rules, func(r lb.Rule) bool { return hasPrefixFold(r.Name, owner) })
		if isUsed {
			names = append(names, balancer.ID.Name)
		}
	}
	slices.Sort(names)
	return names
}

// countPartsLocked counts an owner's parts of a load balancer. The caller holds the lock.
func (c *stateCache) countPartsLocked(name, owner string) (rules, frontends int) {
	observed := c.observed[strings.ToLower(name)]
	for _, r := range observed.Rules {
		if hasPrefixFold(r.Name, owner) {
			rules++
		}
	}
	for _, f := range observed.Frontends {
		if hasPrefixFold(f.Name, owner) {
			frontends++
		}
	}
	return rules, frontends
}

// partsOf returns an owner's rules on all load balancers, and its frontends including shared ones of other
// Services.
func (c *stateCache) partsOf(owner string) (frontends []lb.Frontend, rules []lb.Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.observed)) {
		balancer, used := c.observed[name], map[string]bool{}
		for _, r := range balancer.Rules {
			if hasPrefixFold(r.Name, owner) {
				rules, used[strings.ToLower(r.Frontend)] = append(rules, r), true
			}
		}
		for _, f := range balancer.Frontends {
			if hasPrefixFold(f.Name, owner) || used[strings.ToLower(f.Name)] {
				frontends = append(frontends, f)
			}
		}
	}
	return frontends, rules
}

func (c *stateCache) findAddress(publicIP, subnet string, ip netip.Addr) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, balancer := range c.observed {
		for _, f := range balancer.Frontends {
			if publicIP != "" && strings.EqualFold(f.PublicIP, publicIP) || ip.IsValid() && f.PrivateIP == ip && strings.EqualFold(f.Subnet, subnet) {
				return balancer.ID.Name
			}
		}
	}
	return ""
}

// findRetained returns the load balancer with the latest private address that was retained for a Service.
func (c *stateCache) findRetained(key string, family lb.Family) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, since := "", time.Time{}
	for _, balancer := range c.observed {
		for _, r := range balancer.RetainedAddresses() {
			if r.Service == key && family.Contains(r.Address) && !r.Since.Before(since) {
				name, since = balancer.ID.Name, r.Since
			}
		}
	}
	return name
}

func (c *stateCache) rulesAt(ip lb.PublicIP) []lb.Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, balancer := range c.observed {
		for _, f := range balancer.Frontends {
			if strings.EqualFold(f.PublicIP, ip.ID.String()) {
				return slices.DeleteFunc(slices.Clone(balancer.Rules), func(r lb.Rule) bool { return !strings.EqualFold(r.Frontend, f.Name) })
			}
		}
	}
	return nil
}

// Azure names are case-insensitive.

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(item string) bool { return strings.EqualFold(item, name) })
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// NodeConfigurations returns the configuration of each node at startup, from the shared pools. Keys are addresses, or
// lb.MachineKey for pools of network interfaces. It reads Azure once; callers must not modify the map.
func (b *LoadBalancers) NodeConfigurations(ctx context.Context) (map[string]string, error) {
	if err := b.readAll(ctx); err != nil {
		return nil, err
	}
	b.cache.mu.Lock()
	defer b.cache.mu.Unlock()
	return b.cache.nodes, nil
}

// nodeConfigurations reads the shared pools. A node in several configurations counts for the first.
func (s Settings) nodeConfigurations(ctx context.Context, azure Azure, loadBalancers []lb.LoadBalancer) (map[string]string, error) {
	places := map[string]string{}
	for _, c := range s.Configurations {
		for _, balancer := range loadBalancers {
			if of, ok := service.ConfigurationOf(balancer.ID.Name, s.Configurations); !ok || of.Name != c.Name {
				continue
			}
			nodes, err := s.poolNodes(ctx, azure, balancer)
			if err != nil {
				return nil, err
			}
			for _, node := range nodes {
				if places[node] == "" {
					places[node] = c.Name
				}
			}
		}
	}
	return places, nil
}

func (s Settings) poolNodes(ctx context.Context, azure Azure, balancer lb.LoadBalancer) (nodes []string, err error) {
	for _, pool := range balancer.Pools {
		if !containsFold(s.NodePools(), pool.ID.Name) {
			continue
		}
		if pool.NIC && len(s.Configurations) > 1 { // with one configuration the machines do not matter
			if pool, err = azure.ResolveMachines(ctx, pool); err != nil {
				return nil, fmt.Errorf("machines of pool %s of load balancer %s: %w", pool.ID.Name, balancer.ID.Name, err)
			}
		}
		for _, a := range pool.Addresses {
			switch {
			case a.Machine != "":
				nodes = append(nodes, a.Machine)
			case a.IP.IsValid():
				nodes = append(nodes, a.IP.String())
			}
		}
	}
	return nodes, nil
}
