// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Configuration is one of the cluster's load balancers: it and its internal twin.
type Configuration struct {
	// Name is the load balancer's; one configuration has the cluster's.
	Name string
	// PrimaryVMSet is the scale set or availability set whose nodes are on it; empty for none.
	PrimaryVMSet string
	// Closed is true if no Service that is not there yet may come.
	Closed bool
	// Services, Namespaces and Nodes tell by labels who belongs here; nil is no selector.
	Services, Namespaces, Nodes Selector
}

// Selector reports whether it selects something with these labels.
type Selector func(labels map[string]string) bool

// Places reports whether there is anything to choose: a single load balancer without
// conditions takes every Service.
func Places(all []Configuration) bool {
	return len(all) != 1 || all[0].Closed || all[0].Services != nil || all[0].Namespaces != nil
}

// ConfigurationOf returns the configuration that a load balancer belongs to, by its name;
// false if it is none of them.
func ConfigurationOf(loadBalancer string, all []Configuration) (Configuration, bool) {
	for _, c := range all {
		if strings.EqualFold(loadBalancer, c.Name) || strings.EqualFold(loadBalancer, c.Name+twin) {
			return c, true
		}
	}
	return Configuration{}, false
}

// ConfigurationName names the configuration that a load balancer belongs to: of one that is none of
// the given ones it is its own, or that of its twin.
func ConfigurationName(loadBalancer string, all []Configuration) string {
	if c, ok := ConfigurationOf(loadBalancer, all); ok {
		return c.Name
	}
	return strings.TrimSuffix(strings.ToLower(loadBalancer), twin)
}

// twin is what the name of an internal load balancer ends in.
const twin = "-internal"

// LoadBalancerName is the name of a configuration's load balancer for a Service.
func LoadBalancerName(configuration string, internal bool) string {
	if internal {
		return configuration + twin
	}
	return configuration
}

// IsInternal reports whether a load balancer of the cluster is one with private frontends, by its name.
func IsInternal(loadBalancer string) bool {
	return strings.HasSuffix(strings.ToLower(loadBalancer), twin)
}

// Occupancy is how full a configuration's load balancer is, of the kind that a Service
// needs: public or internal.
type Occupancy struct {
	// Exists is true if it is there in Azure.
	Exists bool
	// HasFrontend is true if something has a frontend there. Then one of them has an IPv4 address: Azure requires it.
	HasFrontend bool
	// Rules counts those of others.
	Rules int
	// Exceeded is why the Service would exceed a bound of its namespace; nil if it would not.
	Exceeded error
}

// Candidate is a Service that needs a load balancer.
type Candidate struct {
	Labels, NamespaceLabels map[string]string
	Desired                 Spec
	// Current is the configuration where it is; empty if nowhere yet.
	Current string
	// Pinned is the configuration that has the address which the Service asks for;
	// empty if none has.
	Pinned string
}

// Place returns the configuration whose load balancer a Service belongs on. It stays where
// it is as long as its annotation and the selectors allow it; one with IPv6 alone goes where an IPv4
// frontend is. The reasons of an error are for people.
//
// Source: https://cloud-provider-azure.sigs.k8s.io/topics/multislb/
func Place(c Candidate, all []Configuration, occupied map[string]Occupancy, mostRules int) (string, error) {
	may, err := eligible(c, all)
	if err != nil {
		return "", err
	}
	if c.Pinned != "" {
		if !slices.Contains(may, c.Pinned) {
			return "", fmt.Errorf("the address is on load balancer %s, where the Service may not be: it may be on %s", c.Pinned, strings.Join(may, ", "))
		}
		return c.Pinned, nil
	}
	if c.Desired.hasIPv6Alone() {
		may = besideIPv4(may, occupied)
	}
	if slices.Contains(may, c.Current) {
		return c.Current, nil
	}
	rules := len(c.Desired.Rules)
	room := slices.DeleteFunc(slices.Clone(may), func(name string) bool {
		return mostRules > 0 && occupied[name].Rules+rules > mostRules
	})
	if len(room) == 0 {
		return "", fmt.Errorf("%d more rules fit on none of the load balancers where the Service may be (%s): each may have %d", rules, strings.Join(may, ", "), mostRules)
	}
	fits := slices.DeleteFunc(slices.Clone(room), func(name string) bool { return occupied[name].Exceeded != nil })
	if len(fits) == 0 {
		return "", fmt.Errorf("%w (the same is true of each load balancer where the Service may be: %s)", occupied[room[0]].Exceeded, strings.Join(room, ", "))
	}
	return slices.MinFunc(fits, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(occupied[a]), rank(occupied[b])), cmp.Compare(occupied[a].Rules, occupied[b].Rules))
	}), nil // the first of several in the order of the configuration
}

// besideIPv4 returns those of the configurations where a Service may have IPv6 alone; all if there is none yet.
func besideIPv4(may []string, occupied map[string]Occupancy) []string {
	beside := slices.DeleteFunc(slices.Clone(may), func(name string) bool { return !occupied[name].HasFrontend })
	if len(beside) == 0 {
		return may
	}
	return beside
}

// rank prefers a load balancer that is there and empty, then one to be made.
func rank(o Occupancy) int {
	switch {
	case o.Exists && o.Rules == 0:
		return 0
	case !o.Exists:
		return 1
	}
	return 2
}

// eligible returns where a Service may be, in the order of the configuration.
func eligible(c Candidate, all []Configuration) ([]string, error) {
	var named, open []Configuration
	for _, conf := range all {
		if len(c.Desired.Configurations) == 0 || containsFold(c.Desired.Configurations, conf.Name) {
			named = append(named, conf)
		}
	}
	if len(named) == 0 {
		return nil, Problem{Configurations, strings.Join(c.Desired.Configurations, ","), "names of multipleStandardLoadBalancerConfigurations: " + strings.Join(names(all), ", ")}
	}
	for _, conf := range named {
		if !conf.Closed || conf.Name == c.Current {
			open = append(open, conf)
		}
	}
	if len(open) == 0 {
		return nil, fmt.Errorf("%s takes no further Services: allowServicePlacement is false", strings.Join(names(named), ", "))
	}
	var chosen, free []Configuration
	for _, conf := range open {
		switch {
		case conf.Services == nil && conf.Namespaces == nil:
			free = append(free, conf)
		case selects(conf.Services, c.Labels) && selects(conf.Namespaces, c.NamespaceLabels):
			chosen = append(chosen, conf)
		}
	}
	if len(chosen) == 0 {
		chosen = free
	}
	if len(chosen) == 0 {
		return nil, errors.New("the labels of the Service and its namespace match none of " + strings.Join(names(open), ", "))
	}
	return names(chosen), nil
}

// selects reports whether labels pass; no selector lets all pass.
func selects(s Selector, labels map[string]string) bool { return s == nil || s(labels) }

func names(all []Configuration) []string {
	list := make([]string, len(all))
	for i, c := range all {
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
	// VMSet is its scale set, or the availability set of its machine; empty for neither.
	VMSet string
	// Placed is the configuration that it was placed on before, as recorded, or as Azure
	// shows it; empty if on none.
	Placed string
}

// PlaceNodes returns the configuration of each node, by its name: each node is on just
// one. One without a set or a selector that says where stays where it is, and otherwise
// goes where the fewest nodes are. A node is missing if no configuration may have it.
//
// Source: https://cloud-provider-azure.sigs.k8s.io/topics/multislb/
func PlaceNodes(nodes []Node, all []Configuration) map[string]string {
	placed := make(map[string]string, len(nodes))
	count := map[string]int{}
	put := func(n Node, configuration string) {
		placed[n.Name] = configuration
		count[configuration]++
	}
	var rest []Node
	for _, n := range nodes {
		if conf := PlaceOf(n, all); conf != "" {
			put(n, conf)
		} else {
			rest = append(rest, n)
		}
	}
	free := unselective(all)
	if len(free) == 0 {
		return placed
	}
	slices.SortFunc(rest, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range rest {
		put(n, slices.MinFunc(free, func(a, b Configuration) int { return cmp.Compare(count[a.Name], count[b.Name]) }).Name)
	}
	return placed
}

// PlaceOf returns the configuration of a node as far as that does not depend on other nodes:
// where its set or a selector says, or where it is; empty otherwise.
func PlaceOf(n Node, all []Configuration) string {
	if conf := belongs(n, all); conf != "" {
		return conf
	}
	if slices.Contains(names(unselective(all)), n.Placed) {
		return n.Placed
	}
	return ""
}

// unselective are the configurations that take any node.
func unselective(all []Configuration) []Configuration {
	return slices.DeleteFunc(slices.Clone(all), func(c Configuration) bool { return c.Nodes != nil })
}

// belongs returns the configuration that a node's set or labels name; empty if none.
func belongs(n Node, all []Configuration) string {
	for _, conf := range all {
		if conf.PrimaryVMSet != "" && strings.EqualFold(conf.PrimaryVMSet, n.VMSet) {
			return conf.Name
		}
	}
	for _, conf := range all {
		if conf.Nodes != nil && conf.Nodes(n.Labels) {
			return conf.Name
		}
	}
	return ""
}
