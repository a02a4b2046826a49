// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
)

const (
	// placedRules is the default of maximumLoadBalancerRuleCount where Services are placed
	// on several load balancers.
	placedRules = 250
	// kube-proxy tells there whether it works.
	sharedProbePort = 10256
	sharedProbePath = "/healthz"
)

// mostRules is Azure's limit for the rules of a Standard load balancer:
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const mostRules = 1500

const (
	mostPort      = 65535
	mostProbePath = 2048
)

// ProbeMode is how Services are probed that are not Local.
type ProbeMode string

// The probe modes.
const (
	ProbeNodePort ProbeMode = "servicenodeport" // each port at its own node port
	ProbeShared   ProbeMode = "shared"          // all at one port of the node
)

// LoadBalancers says which load balancers are made, what is on them, and which nodes are
// meant.
type LoadBalancers struct {
	LoadBalancerResourceGroup string `json:"loadBalancerResourceGroup,omitempty"`
	// LoadBalancerName replaces the cluster's name as that of the single load balancer.
	LoadBalancerName string `json:"loadBalancerName,omitempty"`
	// LoadBalancerSKU is standard or empty: there is no other choice.
	LoadBalancerSKU string `json:"loadBalancerSku,omitempty"`
	// BackendPoolType is nodeIP or empty: there is no other choice.
	BackendPoolType string `json:"loadBalancerBackendPoolConfigurationType,omitempty"`
	// Configurations are the load balancers where there are several; empty for one.
	Configurations []LoadBalancerConfiguration `json:"multipleStandardLoadBalancerConfigurations,omitempty"`
	// MaximumRules is how many rules one may have; see MostRules.
	MaximumRules *int `json:"maximumLoadBalancerRuleCount,omitempty"`
	// DisableOutboundSNAT keeps members from using frontends for outbound flows.
	DisableOutboundSNAT bool `json:"disableOutboundSNAT,omitempty"`
	// ProbeMode is compared without regard to case; see SharesProbe.
	ProbeMode       ProbeMode `json:"clusterServiceLoadBalancerHealthProbeMode,omitempty"`
	SharedProbePort *int      `json:"clusterServiceSharedLoadBalancerHealthProbePort,omitempty"`
	SharedProbePath string    `json:"clusterServiceSharedLoadBalancerHealthProbePath,omitempty"`
	// ExcludeMaster keeps control-plane nodes out of the pools; unset is true.
	ExcludeMaster *bool `json:"excludeMasterFromStandardLB,omitempty"`
}

// ExcludesMaster reports whether control-plane nodes stay out of the pools.
func (l LoadBalancers) ExcludesMaster() bool { return l.ExcludeMaster == nil || *l.ExcludeMaster }

// MostRules returns how many rules a load balancer may have. Unset it is Azure's limit
// where there is one load balancer: there is no other place for a Service to go.
func (l LoadBalancers) MostRules() int {
	switch {
	case l.MaximumRules != nil:
		return *l.MaximumRules
	case len(l.Configurations) > 0:
		return placedRules
	}
	return mostRules
}

// SharesProbe reports whether all Services that are not Local share one probe.
func (l LoadBalancers) SharesProbe() bool {
	return strings.EqualFold(string(l.ProbeMode), string(ProbeShared))
}

// ProbePort returns the port of the shared probe.
func (l LoadBalancers) ProbePort() int {
	if l.SharedProbePort == nil {
		return sharedProbePort
	}
	return *l.SharedProbePort
}

// ProbePath returns what the shared probe asks for.
func (l LoadBalancers) ProbePath() string { return first(l.SharedProbePath, sharedProbePath) }

func (l LoadBalancers) check() error {
	switch {
	case l.LoadBalancerSKU != "" && !strings.EqualFold(l.LoadBalancerSKU, "standard"):
		return fmt.Errorf(`key "loadBalancerSku" is %q: set "standard", or remove the key: Azure retired Basic load balancers on 30 September 2025, and Weir makes Standard ones alone`, l.LoadBalancerSKU)
	case l.BackendPoolType != "" && !strings.EqualFold(l.BackendPoolType, "nodeIP"):
		return fmt.Errorf(`key "loadBalancerBackendPoolConfigurationType" is %q: set "nodeIP", or remove the key: the pools that Weir makes hold the addresses of nodes`, l.BackendPoolType)
	case l.LoadBalancerName != "" && len(l.Configurations) > 0:
		return fmt.Errorf(`key "loadBalancerName" is %q beside "multipleStandardLoadBalancerConfigurations", whose entries have names of their own: remove one of the two keys`, l.LoadBalancerName)
	case l.MaximumRules != nil && (*l.MaximumRules < 1 || *l.MaximumRules > mostRules):
		return fmt.Errorf(`key "maximumLoadBalancerRuleCount" is %d: want 1 to %d, which is Azure's limit, or remove the key`, *l.MaximumRules, mostRules)
	case l.ProbeMode != "" && !l.SharesProbe() && !strings.EqualFold(string(l.ProbeMode), string(ProbeNodePort)):
		return fmt.Errorf(`key "clusterServiceLoadBalancerHealthProbeMode" is %q: want %q or %q`, l.ProbeMode, ProbeNodePort, ProbeShared)
	case l.ProbePort() < 1 || l.ProbePort() > mostPort:
		return fmt.Errorf(`key "clusterServiceSharedLoadBalancerHealthProbePort" is %d: want 1 to %d, or remove the key for %d`, l.ProbePort(), mostPort, sharedProbePort)
	case !strings.HasPrefix(l.ProbePath(), "/") || len(l.ProbePath()) > mostProbePath || strings.ContainsAny(l.ProbePath(), " \t\r\n"):
		return fmt.Errorf(`key "clusterServiceSharedLoadBalancerHealthProbePath" is %q: want a path that begins with "/", without spaces, of at most %d characters`, l.ProbePath(), mostProbePath)
	}
	if l.LoadBalancerName != "" {
		if err := checkLoadBalancerName("loadBalancerName", l.LoadBalancerName); err != nil {
			return err
		}
	}
	return checkConfigurations(l.Configurations)
}

// normalizeLoadBalancers fills in the defaults of what has passed check.
func (l *LoadBalancers) normalizeLoadBalancers() {
	l.ExcludeMaster, l.MaximumRules, l.SharedProbePort = new(l.ExcludesMaster()), new(l.MostRules()), new(l.ProbePort())
	mode := ProbeNodePort
	if l.SharesProbe() {
		mode = ProbeShared
	}
	l.ProbeMode = mode
	l.Configurations = normalizeConfigurations(l.Configurations)
}

// checkLoadBalancerName checks a name and that of its internal twin, which is longer.
func checkLoadBalancerName(key, name string) error {
	for _, full := range []string{name, name + twin} {
		id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "g", Name: full}
		if err := id.Validate(); err != nil {
			return fmt.Errorf("key %q is %q: %w", key, name, err)
		}
	}
	return nil
}
