// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/wholewrite"
)

// DefaultPath is where cluster builders put the file.
const DefaultPath = "/etc/kubernetes/azure.json"

// The defaults of the keys of the same names. The names are a contract: users and
// tools of the Azure cloud provider know them.
const (
	// DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds is the interval of a pool.
	DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds = 30
	// DefaultLoadBalancerBackendPoolUpdateMaxRetries counts the tries after the first.
	DefaultLoadBalancerBackendPoolUpdateMaxRetries = 3
	// DefaultLoadBalancerBackendPoolDriftRepairIntervalInSeconds is how often each pool
	// is read though nothing changed.
	DefaultLoadBalancerBackendPoolDriftRepairIntervalInSeconds = 600
	// DefaultLoadBalancerBackendPoolUpdateParallelMachines is how many network interfaces and scale
	// sets are written at a time: each takes up to minutes, and Azure counts what is under way.
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

// Cloud says which Azure, and what in it.
type Cloud struct {
	// Name is the name of the cloud, AzurePublicCloud if empty; see cloud.NameOf.
	Name           string `json:"cloud,omitempty"`
	SubscriptionID string `json:"subscriptionId,omitempty"`
	ResourceGroup  string `json:"resourceGroup,omitempty"`
	// Location is the region of what is made.
	Location string `json:"location,omitempty"`
	// Tags are "a=b,c=d". ResourceTags returns them together with TagsMap.
	Tags    string            `json:"tags,omitempty"`
	TagsMap map[string]string `json:"tagsMap,omitempty"`
	// ResourceManagerEndpoint replaces the cloud's endpoint and token audience.
	ResourceManagerEndpoint string `json:"resourceManagerEndpoint,omitempty"`
}

// Auth names identities. The first that is configured is used: workload identity,
// managed identity, client secret, certificate.
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

// Network says where the nodes are.
type Network struct {
	VnetName          string `json:"vnetName,omitempty"`
	VnetResourceGroup string `json:"vnetResourceGroup,omitempty"`
	// SubnetName is where private frontends are that name no subnet themselves.
	SubnetName string `json:"subnetName,omitempty"`
	// SecurityGroupName is the network security group of the nodes; empty for none.
	SecurityGroupName          string `json:"securityGroupName,omitempty"`
	SecurityGroupResourceGroup string `json:"securityGroupResourceGroup,omitempty"`
	// RequireEffectiveRestrictions refuses Services whose restrictions would keep nobody out.
	RequireEffectiveRestrictions bool `json:"requireEffectiveRestrictions,omitempty"`
	// NetworkResourceSubscriptionID holds the network where it is not in the
	// cluster's subscription.
	NetworkResourceSubscriptionID string `json:"networkResourceSubscriptionID,omitempty"`
}

// PoolUpdate paces the writes of a pool.
type PoolUpdate struct {
	// IntervalSeconds is the interval; unset, 0 or less is 30.
	IntervalSeconds *int `json:"loadBalancerBackendPoolUpdateIntervalInSeconds,omitempty"`
	// WriteSharePercent is how much of what Azure takes of a subscription's writes may be spent;
	// unset is 50.
	WriteSharePercent *int `json:"loadBalancerBackendPoolUpdateWriteSharePercent,omitempty"`
	// ParallelMachines is how many network interfaces and scale sets are written at a time; unset is 20.
	ParallelMachines *int `json:"loadBalancerBackendPoolUpdateParallelMachines,omitempty"`
	// MaxRetries counts the tries after the first failed one; unset is 3, 0 is none.
	MaxRetries *int `json:"loadBalancerBackendPoolUpdateMaxRetries,omitempty"`
	// DriftSeconds is how often a pool is read though nothing changed; unset is 600, 0
	// is never.
	DriftSeconds *int `json:"loadBalancerBackendPoolDriftRepairIntervalInSeconds,omitempty"`
	// UseResourceLease takes the Lease that other controllers of the cluster's load
	// balancers take; unset is false.
	UseResourceLease *bool `json:"useResourceLease,omitempty"`
	// EnableWholeWrites has several pools of a load balancer written by one write of it: true,
	// false, or auto, which is where Azure was seen to take that; unset is auto.
	EnableWholeWrites wholewrite.Setting `json:"enableLoadBalancerWholeWrites,omitempty"`
	// WriteStrategy is how several pools of a load balancer are written that are due together:
	// serial, pipelined, whole, or auto, which leaves it to EnableWholeWrites and to what Azure was
	// seen to take; unset is auto.
	WriteStrategy wholewrite.Strategy `json:"loadBalancerWriteStrategy,omitempty"`
}

// BackendResourceGroup returns the resource group of the load balancers.
func (c Config) BackendResourceGroup() string {
	return first(c.LoadBalancerResourceGroup, c.ResourceGroup)
}

// VirtualNetworkID returns the ARM id of the nodes' virtual network; empty if
// vnetName is not set.
func (c Config) VirtualNetworkID() string {
	if c.VnetName == "" {
		return ""
	}
	return "/subscriptions/" + first(c.NetworkResourceSubscriptionID, c.SubscriptionID) +
		"/resourceGroups/" + first(c.VnetResourceGroup, c.ResourceGroup) +
		"/providers/Microsoft.Network/virtualNetworks/" + c.VnetName
}

// SecurityGroup returns the id of the nodes' network security group; its name is empty if
// none is named.
func (c Config) SecurityGroup() lb.ResourceID {
	return lb.ResourceID{
		SubscriptionID: first(c.NetworkResourceSubscriptionID, c.SubscriptionID),
		ResourceGroup:  first(c.SecurityGroupResourceGroup, c.ResourceGroup),
		Type:           lb.TypeSecurityGroup, Name: c.SecurityGroupName,
	}
}

// WorkloadIdentity reports whether workload identity is configured: by its key, or,
// where that is unset, by a token file.
func (a Auth) WorkloadIdentity() bool {
	if a.UseWorkloadIdentity != nil {
		return *a.UseWorkloadIdentity
	}
	return a.AADFederatedTokenFile != ""
}

// ManagedIdentity reports whether managed identity is configured.
func (a Auth) ManagedIdentity() bool { return a.UseManagedIdentity != nil && *a.UseManagedIdentity }

// WriteShare returns the share of a subscription's writes that may be spent, from 0 to 1.
func (p PoolUpdate) WriteShare() float64 {
	if p.WriteSharePercent == nil {
		return pace.DefaultShare
	}
	return float64(*p.WriteSharePercent) / 100
}

// Interval returns the interval of a pool.
func (p PoolUpdate) Interval() time.Duration {
	if p.IntervalSeconds == nil || *p.IntervalSeconds <= 0 {
		return DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds * time.Second
	}
	return time.Duration(*p.IntervalSeconds) * time.Second
}

// MachinesAtATime returns how many network interfaces and scale sets are written at a time.
func (p PoolUpdate) MachinesAtATime() int {
	if p.ParallelMachines == nil {
		return DefaultLoadBalancerBackendPoolUpdateParallelMachines
	}
	return *p.ParallelMachines
}

// Retries returns how often a pool is tried again after a first failure.
func (p PoolUpdate) Retries() int {
	if p.MaxRetries == nil {
		return DefaultLoadBalancerBackendPoolUpdateMaxRetries
	}
	return max(*p.MaxRetries, 0)
}

// DriftPeriod returns how often each pool is read though nothing changed; 0 is never.
func (p PoolUpdate) DriftPeriod() time.Duration {
	if p.DriftSeconds == nil {
		return DefaultLoadBalancerBackendPoolDriftRepairIntervalInSeconds * time.Second
	}
	return time.Duration(max(*p.DriftSeconds, 0)) * time.Second
}

// TakesResourceLease reports whether the resource lease is taken before a pass.
func (p PoolUpdate) TakesResourceLease() bool {
	return p.UseResourceLease != nil && *p.UseResourceLease
}

// WholeWrites says whether load balancers are written whole where several of their pools are
// due.
func (p PoolUpdate) WholeWrites() wholewrite.Setting {
	if s := p.Strategy().OfWhole(); s != wholewrite.Auto {
		return s
	}
	return wholewrite.Setting(first(string(p.EnableWholeWrites), string(wholewrite.Auto)))
}

// contradicts reports whether one key asks for writes of whole load balancers and the other forbids
// them.
func (p PoolUpdate) contradicts() bool {
	by := p.Strategy().OfWhole()
	return by != wholewrite.Auto && p.EnableWholeWrites.Valid() && p.EnableWholeWrites != wholewrite.Auto && p.EnableWholeWrites != by
}

// Strategy says how several pools that are due together are written.
func (p PoolUpdate) Strategy() wholewrite.Strategy {
	return wholewrite.Strategy(first(string(p.WriteStrategy), string(wholewrite.ByVerdict)))
}

// String names what the configuration is about, and no secret.
func (c Config) String() string {
	return fmt.Sprintf("cloud %s, subscription %s, resource group %s", first(c.Name, "AzurePublicCloud"), c.SubscriptionID, c.ResourceGroup)
}

// LogValue lets slog print what matters, and no secret.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("cloud", first(c.Name, "AzurePublicCloud")),
		slog.String("subscriptionId", c.SubscriptionID),
		slog.String("resourceGroup", c.ResourceGroup),
		slog.String("loadBalancerResourceGroup", c.BackendResourceGroup()),
		slog.String("location", c.Location),
		slog.String("virtualNetwork", c.VirtualNetworkID()),
		slog.String("subnet", c.SubnetName),
		slog.String("securityGroup", c.SecurityGroupName),
		slog.Bool("requireEffectiveRestrictions", c.RequireEffectiveRestrictions),
		slog.String("loadBalancers", c.loadBalancers()),
		slog.String("pools", string(c.Holds())),
		slog.Int("maxRules", c.MostRules()),
		slog.Bool("sharedProbe", c.SharesProbe()),
		slog.Bool("outboundSNAT", !c.DisableOutboundSNAT),
		slog.Int("tags", len(c.ResourceTags())),
		slog.String("interval", c.Interval().String()),
		slog.Int("maxRetries", c.Retries()),
		slog.Int("parallelMachines", c.MachinesAtATime()),
		slog.String("driftPeriod", c.DriftPeriod().String()),
		slog.Bool("resourceLease", c.TakesResourceLease()),
		slog.String("wholeWrites", string(c.WholeWrites())),
		slog.String("writeStrategy", string(c.Strategy())),
		slog.Bool("nodeAdminState", c.SetsAdminState()),
	)
}

// loadBalancers names the load balancers as far as the file does.
func (c Config) loadBalancers() string {
	return first(strings.Join(c.configurationNames(), ","), first(c.LoadBalancerName, "the cluster's"))
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
