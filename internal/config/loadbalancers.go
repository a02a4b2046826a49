// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/zones"
)

const (
	// defaultRules is the default of maximumLoadBalancerRuleCount, as in cloud-provider-azure.
	defaultRules = 250
	// kube-proxy's health check
	sharedProbePort = 10256
	sharedProbePath = "/healthz"
)

// maxRules is Azure's limit of rules on a Standard load balancer:
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const maxRules = 1500

const (
	maxPort      = 65535
	maxProbePath = 2048
)

// ProbeMode selects the health probe of Services with externalTrafficPolicy Cluster.
type ProbeMode string

// The probe modes.
const (
	ProbeNodePort ProbeMode = "servicenodeport" // each port at its node port
	ProbeShared   ProbeMode = "shared"          // one port of the node for all Services
)

// BackendPoolType selects the member type of pools created for Services.
type BackendPoolType string

// The backend pool types.
const (
	NodeIP              BackendPoolType = "nodeIP"              // IP addresses of nodes
	NodeIPConfiguration BackendPoolType = "nodeIPConfiguration" // network interfaces of nodes
)

// LocalServicePools selects the backend pools of Services with externalTrafficPolicy Local.
type LocalServicePools string

// The pools of Local Services.
const (
	PoolsOfNodes LocalServicePools = "nodes" // the pool of all nodes
	PoolsOwn     LocalServicePools = "own"   // pools of their own, with the nodes that have endpoints
)

// LoadBalancerMigration selects whether Weir migrates Basic load balancers to Standard.
type LoadBalancerMigration string

// The migration modes.
const (
	MigrationAutomatic LoadBalancerMigration = "automatic" // when Weir becomes the leader
	MigrationManual    LoadBalancerMigration = "manual"    // Weir does not migrate them
)

// LoadBalancers configures the load balancers that Weir creates, and their nodes.
type LoadBalancers struct {
	LoadBalancerResourceGroup string `json:"loadBalancerResourceGroup,omitempty"`
	// LoadBalancerName replaces the cluster name as name of the single load balancer.
	LoadBalancerName string `json:"loadBalancerName,omitempty"`
	// LoadBalancerSKU is standard or empty.
	LoadBalancerSKU string `json:"loadBalancerSku,omitempty"`
	// LoadBalancerMigration is case-insensitive.
	LoadBalancerMigration LoadBalancerMigration `json:"loadBalancerMigration,omitempty"`
	// BackendPoolType is case-insensitive. Empty is not normalized: existing pools then retain their type, and
	// MemberType is that of new load balancers.
	BackendPoolType BackendPoolType `json:"loadBalancerBackendPoolConfigurationType,omitempty"`
	// LocalServicePools is case-insensitive. Empty is not normalized: rules then retain their pool.
	LocalServicePools LocalServicePools `json:"localServicePools,omitempty"`
	// Configurations are several load balancers; empty for one.
	Configurations []LoadBalancerConfiguration `json:"multipleStandardLoadBalancerConfigurations,omitempty"`
	// MaximumRules limits the rules of a load balancer; see MaxRules.
	MaximumRules *int `json:"maximumLoadBalancerRuleCount,omitempty"`
	// DisableOutboundSNAT prevents outbound connections through frontends.
	DisableOutboundSNAT bool `json:"disableOutboundSNAT,omitempty"`
	// RetainAddresses is the default of the annotation weir.dev/retain-address.
	RetainAddresses bool `json:"retainAddresses,omitempty"`
	// ProbeMode is case-insensitive.
	ProbeMode       ProbeMode `json:"clusterServiceLoadBalancerHealthProbeMode,omitempty"`
	SharedProbePort *int      `json:"clusterServiceSharedLoadBalancerHealthProbePort,omitempty"`
	SharedProbePath string    `json:"clusterServiceSharedLoadBalancerHealthProbePath,omitempty"`
	// AvailabilityZones are the zones of new public IPs and private frontends. Nil means all of the region, an empty
	// list none.
	AvailabilityZones []string `json:"availabilityZones,omitempty"`
	// ExcludeMaster excludes control-plane nodes from the pools; unset means true.
	ExcludeMaster *bool `json:"excludeMasterFromStandardLB,omitempty"`
}

// ShouldExcludeControlPlane reports whether control-plane nodes are excluded from the pools.
func (l LoadBalancers) ShouldExcludeControlPlane() bool {
	return l.ExcludeMaster == nil || *l.ExcludeMaster
}

// HasInterfaceMembers reports whether new pools of all nodes contain network interfaces.
func (l LoadBalancers) HasInterfaceMembers() bool { return l.MemberType() == NodeIPConfiguration }

// MemberType returns the member type of new pools of all nodes. The default is that of cloud-provider-azure,
// which requires addresses with several load balancers, as do pools of Services.
func (l LoadBalancers) MemberType() BackendPoolType {
	switch {
	case strings.EqualFold(string(l.BackendPoolType), string(NodeIPConfiguration)):
		return NodeIPConfiguration
	case l.BackendPoolType != "" || len(l.Configurations) > 0 || l.localPools() == PoolsOwn:
		return NodeIP
	}
	return NodeIPConfiguration
}

// ShouldConvertPools reports whether existing pools of the other type are converted, which requires an explicit type.
func (l LoadBalancers) ShouldConvertPools() bool { return l.BackendPoolType != "" }

func (l LoadBalancers) localPools() LocalServicePools {
	return LocalServicePools(strings.ToLower(string(l.LocalServicePools)))
}

// MaxRules returns the limit of rules per load balancer.
func (l LoadBalancers) MaxRules() int {
	if l.MaximumRules != nil {
		return *l.MaximumRules
	}
	return defaultRules
}

// RuleLimitSource names the setting behind MaxRules, or "" for Azure's limit.
func (l LoadBalancers) RuleLimitSource() string {
	if l.MaxRules() == maxRules {
		return ""
	}
	return "maximumLoadBalancerRuleCount of azure.json, set or by default"
}

// ShouldMigrate reports whether Basic load balancers are migrated at startup: the SKU is set, and the mode is not
// manual.
func (l LoadBalancers) ShouldMigrate() bool {
	return l.LoadBalancerSKU != "" && !strings.EqualFold(string(l.LoadBalancerMigration), string(MigrationManual))
}

// HasSharedProbe reports whether all Services with externalTrafficPolicy Cluster share one probe.
func (l LoadBalancers) HasSharedProbe() bool {
	return strings.EqualFold(string(l.ProbeMode), string(ProbeShared))
}

// ProbePort returns the shared probe's port.
func (l LoadBalancers) ProbePort() int {
	if l.SharedProbePort == nil {
		return sharedProbePort
	}
	return *l.SharedProbePort
}

// ProbePath returns the shared probe's path.
func (l LoadBalancers) ProbePath() string { return firstNonEmpty(l.SharedProbePath, sharedProbePath) }

func (l LoadBalancers) validateLoadBalancers() error {
	switch {
	case l.LoadBalancerSKU != "" && !strings.EqualFold(l.LoadBalancerSKU, "standard"):
		return fmt.Errorf(`key "loadBalancerSku" is %q: set "standard", or remove the key: Azure retired Basic load balancers on 30 September 2025, and Weir makes Standard ones alone`, l.LoadBalancerSKU)
	case l.LoadBalancerMigration != "" && !strings.EqualFold(string(l.LoadBalancerMigration), string(MigrationManual)) && !strings.EqualFold(string(l.LoadBalancerMigration), string(MigrationAutomatic)):
		return fmt.Errorf(`key "loadBalancerMigration" is %q: want %q or %q, or remove the key for %q`, l.LoadBalancerMigration, MigrationAutomatic, MigrationManual, MigrationAutomatic)
	case strings.EqualFold(string(l.BackendPoolType), "podIP"):
		return fmt.Errorf(`key "loadBalancerBackendPoolConfigurationType" is %q: set %q or %q, or remove the key to retain what pools hold: flows of a load balancer of Weir's go to nodes, and never to pods`, l.BackendPoolType, NodeIP, NodeIPConfiguration)
	case l.BackendPoolType != "" && !l.HasInterfaceMembers() && !strings.EqualFold(string(l.BackendPoolType), string(NodeIP)):
		return fmt.Errorf(`key "loadBalancerBackendPoolConfigurationType" is %q: want %q or %q, or remove the key to retain what pools hold`, l.BackendPoolType, NodeIP, NodeIPConfiguration)
	case l.LocalServicePools != "" && l.localPools() != PoolsOfNodes && l.localPools() != PoolsOwn:
		return fmt.Errorf(`key "localServicePools" is %q: want %q or %q, or remove the key for what cloud-provider-azure does`, l.LocalServicePools, PoolsOfNodes, PoolsOwn)
	case l.localPools() == PoolsOwn && l.HasInterfaceMembers():
		return fmt.Errorf(`key "localServicePools" is %q, and "loadBalancerBackendPoolConfigurationType" is %q: a pool of a Service's own holds addresses: set the latter to %q, or remove the former`, l.LocalServicePools, l.BackendPoolType, NodeIP)
	case l.LoadBalancerName != "" && len(l.Configurations) > 0:
		return fmt.Errorf(`key "loadBalancerName" is %q beside "multipleStandardLoadBalancerConfigurations", whose entries have names of their own: remove one of the two keys`, l.LoadBalancerName)
	case l.MaximumRules != nil && (*l.MaximumRules < 1 || *l.MaximumRules > maxRules):
		return fmt.Errorf(`key "maximumLoadBalancerRuleCount" is %d: want 1 to %d, which is Azure's limit, or remove the key`, *l.MaximumRules, maxRules)
	case l.ProbeMode != "" && !l.HasSharedProbe() && !strings.EqualFold(string(l.ProbeMode), string(ProbeNodePort)):
		return fmt.Errorf(`key "clusterServiceLoadBalancerHealthProbeMode" is %q: want %q or %q`, l.ProbeMode, ProbeNodePort, ProbeShared)
	case l.ProbePort() < 1 || l.ProbePort() > maxPort:
		return fmt.Errorf(`key "clusterServiceSharedLoadBalancerHealthProbePort" is %d: want 1 to %d, or remove the key for %d`, l.ProbePort(), maxPort, sharedProbePort)
	case !l.hasValidZones():
		return fmt.Errorf(`key "availabilityZones" is %q: want %s, or [] for none, or remove the key for all zones of the region`, l.AvailabilityZones, zones.Rule)
	case !strings.HasPrefix(l.ProbePath(), "/") || len(l.ProbePath()) > maxProbePath || strings.ContainsAny(l.ProbePath(), " \t\r\n"):
		return fmt.Errorf(`key "clusterServiceSharedLoadBalancerHealthProbePath" is %q: want a path that begins with "/", without spaces, of at most %d characters`, l.ProbePath(), maxProbePath)
	}
	if l.LoadBalancerName != "" {
		if err := checkLoadBalancerName("loadBalancerName", l.LoadBalancerName); err != nil {
			return err
		}
	}
	return checkConfigurations(l.Configurations)
}

func (l LoadBalancers) hasValidZones() bool {
	_, valid := zones.Normalize(l.AvailabilityZones)
	return valid
}

// ZoneChoice returns the zones of new public IPs and private frontends.
func (l LoadBalancers) ZoneChoice() zones.Choice {
	sorted, _ := zones.Normalize(l.AvailabilityZones)
	return zones.Choice{IsSet: l.AvailabilityZones != nil, Zones: sorted, Source: "availabilityZones in azure.json"}
}

// normalizeLoadBalancers sets the defaults of validated values.
func (l *LoadBalancers) normalizeLoadBalancers() {
	l.ExcludeMaster, l.MaximumRules, l.SharedProbePort = new(l.ShouldExcludeControlPlane()), new(l.MaxRules()), new(l.ProbePort())
	mode := ProbeNodePort
	if l.HasSharedProbe() {
		mode = ProbeShared
	}
	l.ProbeMode = mode
	if l.ShouldConvertPools() {
		l.BackendPoolType = l.MemberType()
	}
	l.LocalServicePools = l.localPools()
	l.Configurations = normalizeConfigurations(l.Configurations)
}

// checkLoadBalancerName validates a name and the longer one of its internal counterpart.
func checkLoadBalancerName(key, name string) error {
	for _, full := range []string{name, name + internalSuffix} {
		id := lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "g", Name: full}
		if err := id.Validate(); err != nil {
			return fmt.Errorf("key %q is %q: %w", key, name, err)
		}
	}
	return nil
}
