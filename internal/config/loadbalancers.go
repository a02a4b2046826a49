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

// BackendPoolType is what the pools hold that are made for Services.
type BackendPoolType string

// The backend pool types.
const (
	NodeIP              BackendPoolType = "nodeIP"              // addresses of nodes
	NodeIPConfiguration BackendPoolType = "nodeIPConfiguration" // network interfaces of nodes
)

// LoadBalancerMigration says who has Basic load balancers become Standard ones.
type LoadBalancerMigration string

// The ways of migration.
const (
	MigrationAutomatic LoadBalancerMigration = "automatic" // Weir, when it begins to lead
	MigrationManual    LoadBalancerMigration = "manual"    // somebody else; they stay as they are
)

// LoadBalancers says which load balancers are made, what is on them, and which nodes are
// meant.
type LoadBalancers struct {
	LoadBalancerResourceGroup string `json:"loadBalancerResourceGroup,omitempty"`
	// LoadBalancerName replaces the cluster's name as that of the single load balancer.
	LoadBalancerName string `json:"loadBalancerName,omitempty"`
	// LoadBalancerSKU is standard or empty: there is no other choice.
	LoadBalancerSKU string `json:"loadBalancerSku,omitempty"`
	// LoadBalancerMigration is compared without regard to case; see Migrates.
	LoadBalancerMigration LoadBalancerMigration `json:"loadBalancerMigration,omitempty"`
	// BackendPoolType is compared without regard to case; empty is NodeIP, and stays empty: see Converts.
	BackendPoolType BackendPoolType `json:"loadBalancerBackendPoolConfigurationType,omitempty"`
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

// Interfaces reports whether the pools hold network interfaces.
func (l LoadBalancers) Interfaces() bool {
	return strings.EqualFold(string(l.BackendPoolType), string(NodeIPConfiguration))
}

// Holds returns what the pools of nodes hold.
func (l LoadBalancers) Holds() BackendPoolType {
	if l.Interfaces() {
		return NodeIPConfiguration
	}
	return NodeIP
}

// Converts reports whether pools of nodes that hold the other kind of members become such of this one:
// somebody has written the kind out. The Azure cloud provider's default is the other one, so a cluster
// that is taken over without the key says nothing.
func (l LoadBalancers) Converts() bool { return l.BackendPoolType != "" }

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

// RulesBy names what sets MostRules; empty is the limit of Azure.
func (l LoadBalancers) RulesBy() string {
	if l.MostRules() == mostRules {
		return ""
	}
	return "maximumLoadBalancerRuleCount of azure.json, set or by default"
}

// Migrates reports whether load balancers that are Basic become Standard ones at the start: people have
// set the SKU, and have not kept Weir from it.
func (l LoadBalancers) Migrates() bool {
	return l.LoadBalancerSKU != "" && !strings.EqualFold(string(l.LoadBalancerMigration), string(MigrationManual))
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
	case l.LoadBalancerMigration != "" && !strings.EqualFold(string(l.LoadBalancerMigration), string(MigrationManual)) && !strings.EqualFold(string(l.LoadBalancerMigration), string(MigrationAutomatic)):
		return fmt.Errorf(`key "loadBalancerMigration" is %q: want %q or %q, or remove the key for %q`, l.LoadBalancerMigration, MigrationAutomatic, MigrationManual, MigrationAutomatic)
	case strings.EqualFold(string(l.BackendPoolType), "podIP"):
		return fmt.Errorf(`key "loadBalancerBackendPoolConfigurationType" is %q: set %q or %q, or remove the key for %q: flows of a load balancer of Weir's go to nodes, and never to pods`, l.BackendPoolType, NodeIP, NodeIPConfiguration, NodeIP)
	case l.BackendPoolType != "" && !l.Interfaces() && !strings.EqualFold(string(l.BackendPoolType), string(NodeIP)):
		return fmt.Errorf(`key "loadBalancerBackendPoolConfigurationType" is %q: want %q or %q, or remove the key for %q`, l.BackendPoolType, NodeIP, NodeIPConfiguration, NodeIP)
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
	if l.Converts() {
		l.BackendPoolType = l.Holds()
	}
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
