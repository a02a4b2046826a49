// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// DefaultPath is where cluster provisioners write the file.
const DefaultPath = "/etc/kubernetes/azure.json"

// Defaults of the keys of the same names, which are a contract with users of cloud-provider-azure.
const (
	// DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds is the update interval of a pool.
	DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds = 30
	// DefaultLoadBalancerBackendPoolUpdateMaxRetries excludes the first attempt.
	DefaultLoadBalancerBackendPoolUpdateMaxRetries = 3
	// DefaultLoadBalancerBackendPoolDriftRepairIntervalInSeconds is the resync period of a pool.
	DefaultLoadBalancerBackendPoolDriftRepairIntervalInSeconds = 600
	// DefaultLoadBalancerBackendPoolUpdateParallelMachines limits concurrent writes of network interfaces and
	// scale sets, which take up to minutes.
	DefaultLoadBalancerBackendPoolUpdateParallelMachines = 20
)

// Config is azure.json. Load returns it normalized: every pointer is set.
type Config struct {
	Cloud
	Auth
	Network
	LoadBalancers
	PrivateLinks
	PoolUpdate
	AdminState
}

// Cloud selects the Azure cloud and the resource group.
type Cloud struct {
	// Name is the cloud, AzurePublicCloud if empty; see azure.CanonicalCloudName.
	Name           string `json:"cloud,omitempty"`
	SubscriptionID string `json:"subscriptionId,omitempty"`
	ResourceGroup  string `json:"resourceGroup,omitempty"`
	Location       string `json:"location,omitempty"`
	// ExtendedLocationName is the edge zone of new load balancers; ExtendedLocationType is then EdgeZone.
	ExtendedLocationName string `json:"extendedLocationName,omitempty"`
	ExtendedLocationType string `json:"extendedLocationType,omitempty"`
	// Tags has the form "a=b,c=d". ResourceTags merges it with TagsMap.
	Tags    string            `json:"tags,omitempty"`
	TagsMap map[string]string `json:"tagsMap,omitempty"`
	// ResourceManagerEndpoint replaces the cloud's endpoint and token audience.
	ResourceManagerEndpoint string `json:"resourceManagerEndpoint,omitempty"`
}

// Auth configures credentials, in order of precedence: workload identity, managed identity, client secret,
// certificate.
type Auth struct {
	TenantID               string `json:"tenantId,omitempty"`
	AADClientID            string `json:"aadClientId,omitempty"`
	AADClientSecret        Secret `json:"aadClientSecret,omitempty"`
	AADClientCertPath      string `json:"aadClientCertPath,omitempty"`
	AADClientCertPassword  Secret `json:"aadClientCertPassword,omitempty"`
	AADFederatedTokenFile  string `json:"aadFederatedTokenFile,omitempty"`
	UserAssignedIdentityID string `json:"userAssignedIdentityID,omitempty"`
	UseManagedIdentity     *bool  `json:"useManagedIdentityExtension,omitempty"`
	UseWorkloadIdentity    *bool  `json:"useFederatedWorkloadIdentityExtension,omitempty"`
}

// Network configures the nodes' network.
type Network struct {
	VnetName          string `json:"vnetName,omitempty"`
	VnetResourceGroup string `json:"vnetResourceGroup,omitempty"`
	// SubnetName is the default subnet of internal frontends.
	SubnetName                 string `json:"subnetName,omitempty"`
	SecurityGroupName          string `json:"securityGroupName,omitempty"`
	SecurityGroupResourceGroup string `json:"securityGroupResourceGroup,omitempty"`
	// RequireEffectiveRestrictions rejects Services whose source restrictions would have no effect.
	RequireEffectiveRestrictions bool `json:"requireEffectiveRestrictions,omitempty"`
	// NetworkResourceSubscriptionID is the subscription of network resources, if not the cluster's.
	NetworkResourceSubscriptionID string `json:"networkResourceSubscriptionID,omitempty"`
	// NetworkResourceTenantID is the tenant of that subscription, if not the cluster's.
	NetworkResourceTenantID string `json:"networkResourceTenantID,omitempty"`
}

// PoolUpdate configures the pace of pool writes.
type PoolUpdate struct {
	// IntervalSeconds defaults to 30 if unset, 0 or less.
	IntervalSeconds *int `json:"loadBalancerBackendPoolUpdateIntervalInSeconds,omitempty"`
	// WriteSharePercent is the share of the write quota that Weir may use; unset means 50.
	WriteSharePercent *int `json:"loadBalancerBackendPoolUpdateWriteSharePercent,omitempty"`
	// ClustersInSubscription divides WriteSharePercent; unset means 1.
	ClustersInSubscription *int `json:"clustersInSubscription,omitempty"`
	// ParallelMachines limits concurrent machine writes; unset means 20.
	ParallelMachines *int `json:"loadBalancerBackendPoolUpdateParallelMachines,omitempty"`
	// MaxRetries excludes the first attempt; unset means 3, 0 none.
	MaxRetries *int `json:"loadBalancerBackendPoolUpdateMaxRetries,omitempty"`
	// DriftSeconds is the resync period; unset means 600, 0 never.
	DriftSeconds *int `json:"loadBalancerBackendPoolDriftRepairIntervalInSeconds,omitempty"`
	// UseResourceLease acquires the Lease shared with other controllers; unset means false.
	UseResourceLease *bool `json:"useResourceLease,omitempty"`
	// WriteStrategy is auto or serial; unset means auto.
	WriteStrategy WriteStrategy `json:"loadBalancerWriteStrategy,omitempty"`
}

// NetworkSubscriptionID returns the subscription of load balancers and other network resources, except network
// interfaces.
func (c Config) NetworkSubscriptionID() string {
	return firstNonEmpty(c.NetworkResourceSubscriptionID, c.SubscriptionID)
}

// NetworkTenantID returns the tenant of NetworkSubscriptionID if it is not the cluster's, otherwise "".
func (c Config) NetworkTenantID() string {
	if strings.EqualFold(c.NetworkResourceTenantID, c.TenantID) {
		return ""
	}
	return c.NetworkResourceTenantID
}

// BackendResourceGroup returns the load balancers' resource group.
func (c Config) BackendResourceGroup() string {
	return firstNonEmpty(c.LoadBalancerResourceGroup, c.ResourceGroup)
}

// VirtualNetworkID returns an ARM ID, or "" without vnetName.
func (c Config) VirtualNetworkID() string {
	if c.VnetName == "" {
		return ""
	}
	return "/subscriptions/" + c.NetworkSubscriptionID() +
		"/resourceGroups/" + firstNonEmpty(c.VnetResourceGroup, c.ResourceGroup) +
		"/providers/Microsoft.Network/virtualNetworks/" + c.VnetName
}

// SecurityGroup returns an ID with an empty name if none is configured.
func (c Config) SecurityGroup() lb.ResourceID {
	return lb.ResourceID{
		SubscriptionID: c.NetworkSubscriptionID(),
		ResourceGroup:  firstNonEmpty(c.SecurityGroupResourceGroup, c.ResourceGroup),
		Type:           lb.TypeSecurityGroup, Name: c.SecurityGroupName,
	}
}

// WorkloadIdentity reports whether the key, or if unset a token file, enables workload identity.
func (a Auth) WorkloadIdentity() bool {
	if a.UseWorkloadIdentity != nil {
		return *a.UseWorkloadIdentity
	}
	return a.AADFederatedTokenFile != ""
}

// ManagedIdentity reports whether managed identity is enabled.
func (a Auth) ManagedIdentity() bool { return a.UseManagedIdentity != nil && *a.UseManagedIdentity }

// WriteShare returns the share of one cluster as a fraction, 0 to 1.
func (p PoolUpdate) WriteShare() float64 {
	return p.totalWriteShare() / float64(p.clusterCount())
}

// totalWriteShare is WriteSharePercent as a fraction.
func (p PoolUpdate) totalWriteShare() float64 {
	if p.WriteSharePercent == nil {
		return ratelimit.DefaultShare
	}
	return float64(*p.WriteSharePercent) / 100
}

func (p PoolUpdate) clusterCount() int {
	if p.ClustersInSubscription == nil {
		return 1
	}
	return *p.ClustersInSubscription
}

// UpdateInterval returns the update interval of a pool.
func (p PoolUpdate) UpdateInterval() time.Duration {
	if p.IntervalSeconds == nil || *p.IntervalSeconds <= 0 {
		return DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds * time.Second
	}
	return time.Duration(*p.IntervalSeconds) * time.Second
}

// MaxParallelMachines returns the limit of concurrent machine writes.
func (p PoolUpdate) MaxParallelMachines() int {
	if p.ParallelMachines == nil {
		return DefaultLoadBalancerBackendPoolUpdateParallelMachines
	}
	return *p.ParallelMachines
}

// RetryCount returns the number of retries after a first failure.
func (p PoolUpdate) RetryCount() int {
	if p.MaxRetries == nil {
		return DefaultLoadBalancerBackendPoolUpdateMaxRetries
	}
	return max(*p.MaxRetries, 0)
}

// DriftPeriod returns the resync period of a pool; 0 means never.
func (p PoolUpdate) DriftPeriod() time.Duration {
	if p.DriftSeconds == nil {
		return DefaultLoadBalancerBackendPoolDriftRepairIntervalInSeconds * time.Second
	}
	return time.Duration(max(*p.DriftSeconds, 0)) * time.Second
}

// IsResourceLeaseEnabled reports whether UseResourceLease is true.
func (p PoolUpdate) IsResourceLeaseEnabled() bool {
	return p.UseResourceLease != nil && *p.UseResourceLease
}

// UpdateStrategy returns WriteStrategy or its default.
func (p PoolUpdate) UpdateStrategy() WriteStrategy {
	return WriteStrategy(firstNonEmpty(string(p.WriteStrategy), string(AutoStrategy)))
}

// String contains no secrets.
func (c Config) String() string {
	return fmt.Sprintf("cloud %s, subscription %s, resource group %s", firstNonEmpty(c.Name, "AzurePublicCloud"), c.SubscriptionID, c.ResourceGroup)
}

// LogValue contains no secrets.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("cloud", firstNonEmpty(c.Name, "AzurePublicCloud")),
		slog.String("subscriptionId", c.SubscriptionID),
		slog.String("networkSubscriptionId", c.NetworkSubscriptionID()),
		slog.String("resourceGroup", c.ResourceGroup),
		slog.String("loadBalancerResourceGroup", c.BackendResourceGroup()),
		slog.String("location", c.Location),
		slog.String("virtualNetwork", c.VirtualNetworkID()),
		slog.String("subnet", c.SubnetName),
		slog.String("securityGroup", c.SecurityGroupName),
		slog.Bool("requireEffectiveRestrictions", c.RequireEffectiveRestrictions),
		slog.String("loadBalancers", c.loadBalancers()),
		slog.String("pools", c.poolsText()),
		slog.String("localServicePools", firstNonEmpty(string(c.LocalServicePools), "unset")),
		slog.Int("maxRules", c.MaxRules()),
		slog.Bool("sharedProbe", c.HasSharedProbe()),
		slog.Bool("outboundSNAT", !c.DisableOutboundSNAT),
		slog.String("zones", c.zoneText()),
		slog.Int("tags", len(c.ResourceTags())),
		slog.String("interval", c.UpdateInterval().String()),
		slog.Int("maxRetries", c.RetryCount()),
		slog.Int("parallelMachines", c.MaxParallelMachines()),
		slog.String("driftPeriod", c.DriftPeriod().String()),
		slog.Bool("resourceLease", c.IsResourceLeaseEnabled()),
		slog.String("writeStrategy", string(c.UpdateStrategy())),
		slog.Bool("nodeAdminState", c.SetsAdminState()),
	)
}

func (c Config) zoneText() string {
	switch {
	case c.AvailabilityZones == nil:
		return "all of the region"
	case len(c.AvailabilityZones) == 0:
		return "none"
	}
	return strings.Join(c.ZoneChoice().Zones, ",")
}

func (c Config) poolsText() string {
	if c.ShouldConvertPools() {
		return string(c.MemberType())
	}
	return "as they are, new ones " + string(c.MemberType())
}

func (c Config) loadBalancers() string {
	return firstNonEmpty(strings.Join(c.configurationNames(), ","), firstNonEmpty(c.LoadBalancerName, "the cluster's"))
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
