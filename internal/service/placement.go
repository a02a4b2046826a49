// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Configuration is a load balancer configuration of the cluster: a load balancer and its internal twin.
type Configuration struct {
	// Name is the load balancer's name; one configuration has the cluster's.
	Name string
	// PrimaryVMSet is the scale set or availability set of its nodes; "" for none.
	PrimaryVMSet string
	// Closed is true if no new Service may be placed here.
	Closed bool
	// Services, Namespaces and Nodes select by labels; nil means no selector.
	Services, Namespaces, Nodes Selector
}

// Selector reports whether it matches the labels.
type Selector func(labels map[string]string) bool

// HasPlacementChoice reports whether there is a choice: a single load balancer without conditions takes every Service.
func HasPlacementChoice(configurations []Configuration) bool {
	return len(configurations) != 1 || configurations[0].Closed || configurations[0].Services != nil || configurations[0].Namespaces != nil
}

// ConfigurationOf returns the configuration of a load balancer by name; false if none.
func ConfigurationOf(loadBalancer string, configurations []Configuration) (Configuration, bool) {
	for _, c := range configurations {
		if strings.EqualFold(loadBalancer, c.Name) || strings.EqualFold(loadBalancer, c.Name+internalSuffix) {
			return c, true
		}
	}
	return Configuration{}, false
}

// ConfigurationName returns the configuration name of a load balancer; for an unknown one, its name without
// the internal suffix.
func ConfigurationName(loadBalancer string, configurations []Configuration) string {
	if c, ok := ConfigurationOf(loadBalancer, configurations); ok {
		return c.Name
	}
	return strings.TrimSuffix(strings.ToLower(loadBalancer), internalSuffix)
}

const internalSuffix = "-internal"

// LoadBalancerName returns the name of a configuration's load balancer for a Service.
func LoadBalancerName(configuration string, internal bool) string {
	if internal {
		return configuration + internalSuffix
	}
	return configuration
}

// IsInternal reports whether the name is that of an internal load balancer.
func IsInternal(loadBalancer string) bool {
	return strings.HasSuffix(strings.ToLower(loadBalancer), internalSuffix)
}

// LoadBalancerUsage is how full a configuration's public or internal load balancer is.
type LoadBalancerUsage struct {
	// Exists is true if Azure has the load balancer.
	Exists bool
	// HasFrontend is true if the load balancer has a frontend. One of them is IPv4: Azure requires it.
	HasFrontend bool
	// Rules is the number of rules of other Services.
	Rules int
	// Exceeded is why the Service would exceed a limit of its namespace, or nil.
	Exceeded error
}

// Candidate is a Service that needs a load balancer.
type Candidate struct {
	Labels, NamespaceLabels map[string]string
	Desired                 Spec
	// Current is the current configuration, or "".
	Current string
	// RequestedConfiguration is the configuration that has the requested address, or "".
	RequestedConfiguration string
}

// ChooseConfiguration returns the configuration for a Service: of those that annotation and selectors allow, the one with
// the requested address, else the current one, else the best by placementRank. An IPv6-only Service needs a load balancer with an IPv4 frontend. Errors are for users.
//
// Source: https://cloud-provider-azure.sigs.k8s.io/topics/multislb/
func ChooseConfiguration(c Candidate, configurations []Configuration, occupied map[string]LoadBalancerUsage, maxRules int) (string, error) {
	candidates, err := eligibleConfigurations(c, configurations)
	if err != nil {
		return "", err
	}
	if c.RequestedConfiguration != "" {
		if !slices.Contains(candidates, c.RequestedConfiguration) {
			return "", fmt.Errorf("the address is on load balancer %s, where the Service may not be: it may be on %s", c.RequestedConfiguration, strings.Join(candidates, ", "))
		}
		return c.RequestedConfiguration, nil
	}
	if c.Desired.isIPv6Only() {
		candidates = withIPv4Frontend(candidates, occupied)
	}
	if slices.Contains(candidates, c.Current) {
		return c.Current, nil
	}
	rules := len(c.Desired.Rules)
	fitting := slices.DeleteFunc(slices.Clone(candidates), func(name string) bool {
		return maxRules > 0 && occupied[name].Rules+rules > maxRules
	})
	if len(fitting) == 0 {
		return "", fmt.Errorf("%d more rules fit on none of the load balancers where the Service may be (%s): each may have %d", rules, strings.Join(candidates, ", "), maxRules)
	}
	allowed := slices.DeleteFunc(slices.Clone(fitting), func(name string) bool { return occupied[name].Exceeded != nil })
	if len(allowed) == 0 {
		return "", fmt.Errorf("%w (the same is true of each load balancer where the Service may be: %s)", occupied[fitting[0]].Exceeded, strings.Join(fitting, ", "))
	}
	return slices.MinFunc(allowed, func(a, b string) int {
		return cmp.Or(cmp.Compare(placementRank(occupied[a]), placementRank(occupied[b])), cmp.Compare(occupied[a].Rules, occupied[b].Rules))
	}), nil // the first in configuration order
}

// withIPv4Frontend returns the configurations that have an IPv4 frontend; all if there is none yet.
func withIPv4Frontend(candidates []string, occupied map[string]LoadBalancerUsage) []string {
	filtered := slices.DeleteFunc(slices.Clone(candidates), func(name string) bool { return !occupied[name].HasFrontend })
	if len(filtered) == 0 {
		return candidates
	}
	return filtered
}

// placementRank prefers an existing empty load balancer, then one to create.
func placementRank(o LoadBalancerUsage) int {
	switch {
	case o.Exists && o.Rules == 0:
		return 0
	case !o.Exists:
		return 1
	}
	return 2
}

// eligibleConfigurations returns the allowed configurations in configuration order.
func eligibleConfigurations(c Candidate, configurations []Configuration) ([]string, error) {
	var named, open []Configuration
	for _, conf := range configurations {
		if len(c.Desired.Configurations) == 0 || containsFold(c.Desired.Configurations, conf.Name) {
			named = append(named, conf)
		}
	}
	if len(named) == 0 {
		return nil, Problem{Configurations, strings.Join(c.Desired.Configurations, ","), "names of multipleStandardLoadBalancerConfigurations: " + strings.Join(configurationNames(configurations), ", ")}
	}
	for _, conf := range named {
		if !conf.Closed || conf.Name == c.Current {
			open = append(open, conf)
		}
	}
	if len(open) == 0 {
		return nil, fmt.Errorf("%s accepts no further Services: allowServicePlacement is false", strings.Join(configurationNames(named), ", "))
	}
	var chosen, free []Configuration
	for _, conf := range open {
		switch {
		case conf.Services == nil && conf.Namespaces == nil:
			free = append(free, conf)
		case matchesSelector(conf.Services, c.Labels) && matchesSelector(conf.Namespaces, c.NamespaceLabels):
			chosen = append(chosen, conf)
		}
	}
	if len(chosen) == 0 {
		chosen = free
	}
	if len(chosen) == 0 {
		return nil, errors.New("the labels of the Service and its namespace match none of " + strings.Join(configurationNames(open), ", "))
	}
	return configurationNames(chosen), nil
}

// matchesSelector reports whether the labels match; a nil selector matches all.
func matchesSelector(s Selector, labels map[string]string) bool { return s == nil || s(labels) }

func configurationNames(configurations []Configuration) []string {
	list := make([]string, len(configurations))
	for i, c := range configurations {
		list[i] = c.Name
	}
	return list
}

func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}

// Node is a node that may take traffic from a load balancer.
type Node struct {
	Name   string
	Labels map[string]string
	// VMSet is its scale set or availability set, or "".
	VMSet string
	// Previous is its previous configuration as recorded or found in Azure, or "".
	Previous string
}

// PlaceNodes returns the configuration of each node by name: exactly one per node. A node that no set or
// selector assigns remains where it is, or is placed where the fewest nodes are. A node is missing from the result
// if no configuration may have it.
//
// Source: https://cloud-provider-azure.sigs.k8s.io/topics/multislb/
func PlaceNodes(nodes []Node, configurations []Configuration) map[string]string {
	placed := make(map[string]string, len(nodes))
	count := map[string]int{}
	put := func(n Node, configuration string) {
		placed[n.Name] = configuration
		count[configuration]++
	}
	var rest []Node
	for _, n := range nodes {
		if conf := PlaceOf(n, configurations); conf != "" {
			put(n, conf)
		} else {
			rest = append(rest, n)
		}
	}
	free := withoutNodeSelector(configurations)
	if len(free) == 0 {
		return placed
	}
	slices.SortFunc(rest, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range rest {
		put(n, slices.MinFunc(free, func(a, b Configuration) int { return cmp.Compare(count[a.Name], count[b.Name]) }).Name)
	}
	return placed
}

// PlaceOf returns the configuration of a node if it does not depend on other nodes: by set or selector, or
// its previous one; otherwise "".
func PlaceOf(n Node, configurations []Configuration) string {
	if conf := selectedConfiguration(n, configurations); conf != "" {
		return conf
	}
	if slices.Contains(configurationNames(withoutNodeSelector(configurations)), n.Previous) {
		return n.Previous
	}
	return ""
}

func withoutNodeSelector(configurations []Configuration) []Configuration {
	return slices.DeleteFunc(slices.Clone(configurations), func(c Configuration) bool { return c.Nodes != nil })
}

// selectedConfiguration returns the configuration that a node's set or labels select, or "".
func selectedConfiguration(n Node, configurations []Configuration) string {
	for _, conf := range configurations {
		if conf.PrimaryVMSet != "" && strings.EqualFold(conf.PrimaryVMSet, n.VMSet) {
			return conf.Name
		}
	}
	for _, conf := range configurations {
		if conf.Nodes != nil && conf.Nodes(n.Labels) {
			return conf.Name
		}
	}
	return ""
}
