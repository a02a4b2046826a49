// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const configurationsKey = "multipleStandardLoadBalancerConfigurations"

const internalSuffix = "-internal"

// LoadBalancerConfiguration is one of several load balancers, with its internal counterpart. A nil selector
// does not select.
type LoadBalancerConfiguration struct {
	Name         string `json:"name,omitempty"`
	PrimaryVMSet string `json:"primaryVMSet,omitempty"`
	// AllowServicePlacement defaults to true.
	AllowServicePlacement    *bool                 `json:"allowServicePlacement,omitempty"`
	ServiceLabelSelector     *metav1.LabelSelector `json:"serviceLabelSelector,omitempty"`
	ServiceNamespaceSelector *metav1.LabelSelector `json:"serviceNamespaceSelector,omitempty"`
	NodeSelector             *metav1.LabelSelector `json:"nodeSelector,omitempty"`
}

// AllowsPlacement returns AllowServicePlacement or its default.
func (c LoadBalancerConfiguration) AllowsPlacement() bool {
	return c.AllowServicePlacement == nil || *c.AllowServicePlacement
}

// CheckClusterName requires one of several load balancers to have the cluster's name.
func (l LoadBalancers) CheckClusterName(cluster string) error {
	names := l.configurationNames()
	if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, cluster) }) {
		return nil
	}
	return fmt.Errorf("key %q: none of the names %q is %q, the cluster's: give it to one entry, or set --cluster-name", configurationsKey, names, cluster)
}

func (l LoadBalancers) configurationNames() []string {
	var names []string
	for _, c := range l.Configurations {
		names = append(names, c.Name)
	}
	return names
}

// checkConfigurations rejects duplicate load balancers and node sets. Azure names are case-insensitive.
func checkConfigurations(list []LoadBalancerConfiguration) error {
	names, sets := map[string]string{}, map[string]string{}
	for i, c := range list {
		key := fmt.Sprintf("%s[%d]", configurationsKey, i)
		if c.Name == "" {
			return fmt.Errorf("key %q is missing: set it to the name of the load balancer", key+".name")
		}
		if err := checkLoadBalancerName(key+".name", c.Name); err != nil {
			return err
		}
		name, set := strings.ToLower(c.Name), strings.ToLower(c.PrimaryVMSet)
		if _, ok := names[name]; ok {
			return fmt.Errorf("key %q is %q, which another entry has, too: capitals make no difference to Azure: choose another name", key+".name", c.Name)
		}
		if other, ok := sets[set]; ok && set != "" {
			return fmt.Errorf("key %q is %q, which is that of %q, too: a node is behind one of them alone: remove it from one entry", key+".primaryVMSet", c.PrimaryVMSet, other)
		}
		names[name], sets[set] = c.Name, c.Name
		if err := cmp.Or(
			checkSelector(key+".serviceLabelSelector", c.ServiceLabelSelector),
			checkSelector(key+".serviceNamespaceSelector", c.ServiceNamespaceSelector),
			checkSelector(key+".nodeSelector", c.NodeSelector)); err != nil {
			return err
		}
	}
	for i, c := range list {
		public, internal := strings.CutSuffix(strings.ToLower(c.Name), internalSuffix)
		if other, ok := names[public]; internal && ok {
			return fmt.Errorf("key %q is %q, as the internal load balancer of %q is named: choose another name", fmt.Sprintf("%s[%d].name", configurationsKey, i), c.Name, other)
		}
	}
	return nil
}

func normalizeConfigurations(list []LoadBalancerConfiguration) []LoadBalancerConfiguration {
	list = slices.Clone(list)
	for i := range list {
		list[i].AllowServicePlacement = new(list[i].AllowsPlacement())
	}
	return list
}
