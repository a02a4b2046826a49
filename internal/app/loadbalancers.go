// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

func loadBalancerSettings(cfg config.Config, cluster string) (loadbalancer.Settings, error) {
	if err := cfg.CheckClusterName(cluster); err != nil {
		return loadbalancer.Settings{}, err
	}
	s := loadbalancer.Settings{
		Settings: service.Settings{
			ClusterName:    cluster,
			PrivateLinks:   cfg.PrivateLinkServices(),
			PublicIPs:      lb.ResourceID{SubscriptionID: cfg.NetworkSubscriptionID(), ResourceGroup: cfg.ResourceGroup},
			VirtualNetwork: cfg.VirtualNetworkID(), Subnet: cfg.SubnetName,
			Interfaces: cfg.HasInterfaceMembers(), ConvertsPools: cfg.ShouldConvertPools(),
			LocalPools: service.LocalPools(cfg.LocalServicePools), SeveralLoadBalancers: len(cfg.Configurations) > 0, DisableOutboundSNAT: cfg.DisableOutboundSNAT, RetainAddresses: cfg.RetainAddresses, Tags: cfg.ResourceTags(),
		},
		Place:    lb.LoadBalancerID{SubscriptionID: cfg.NetworkSubscriptionID(), ResourceGroup: cfg.BackendResourceGroup()},
		Location: cfg.Location, ExtendedLocation: cfg.ExtendedLocationName, DefaultZones: cfg.ZoneChoice(),
		MaxRules: cfg.MaxRules(), RulesBy: cfg.RuleLimitSource(),

		SecurityGroup: cfg.SecurityGroup(), RequireEffectiveRestrictions: cfg.RequireEffectiveRestrictions,
		PodSubnets: cfg.PodSubnetNames, MaxPrivateLinks: cfg.MaxPrivateLinks(), CanOpenSubnets: cfg.DisableSubnetPolicies,
	}
	if cfg.HasSharedProbe() {
		s.SharedProbe = service.SharedProbeOf(int32(cfg.ProbePort()), cfg.ProbePath()) //nolint:gosec // a port
	}
	for _, c := range cfg.Configurations {
		conf := service.Configuration{Name: c.Name, PrimaryVMSet: c.PrimaryVMSet, Closed: !c.AllowsPlacement()}
		for _, sel := range []struct {
			from *metav1.LabelSelector
			to   *service.Selector
		}{{c.ServiceLabelSelector, &conf.Services}, {c.ServiceNamespaceSelector, &conf.Namespaces}, {c.NodeSelector, &conf.Nodes}} {
			if sel.from == nil {
				continue
			}
			matches, err := cache.NewSelector(sel.from)
			if err != nil {
				return loadbalancer.Settings{}, fmt.Errorf("multipleStandardLoadBalancerConfigurations: %s: %w", c.Name, err)
			}
			*sel.to = matches
		}
		s.Configurations = append(s.Configurations, conf)
	}
	if len(s.Configurations) == 0 {
		name := cluster
		if cfg.LoadBalancerName != "" {
			name = cfg.LoadBalancerName
		}
		s.Configurations = []service.Configuration{{Name: name}}
	}
	return s, nil
}

func addLoadBalancers(o Options, in Dependencies, client *azure.Client, cluster *controllers.Cluster, workers *updater.Workers, lease updater.Lease, overtaken func(resource string, settled bool), writes *ratelimit.Budgets, record recordStore) (*loadbalancer.LoadBalancers, error) {
	cfg := in.Config
	settings, err := loadBalancerSettings(cfg, o.ClusterName)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	ensuring := loadbalancer.Config{
		Settings: settings, Azure: client, PrivateLinks: azure.NewPrivateLinkClient(client), Workers: workers, Cluster: cluster.Services, Owners: record.publicIPOwnerStore(), PublicIPGroups: record.publicIPGroupStore(), PrivateIPs: record.privateIPStore(), LeftPools: record.leftPoolStore(o.Log), ReservedAddress: record.owedAddresses.Address,
		OnResult: cluster.Services.HandleResult, OnRecreated: func(id lb.LoadBalancerID) { services.HandleLoadBalancerCreated(cluster.Services, id) }, OnConflict: overtaken, Zones: o.zones, Log: o.Log,
	}
	if lease != nil {
		ensuring.Lease = lease
	}
	balancing := serviceOptions(o, cfg, settings, client, record.namespace)
	if !balancing.Guarded {
		o.Log.Info("azure.json names no securityGroupName: security groups are not managed, so source ranges of Services have no effect there")
	}
	balancing.NewDryRun = dryrun.NewSimulatorFactory(ensuring).NewSimulator
	ensuring.OnPortsReleased = cluster.Services.RequeueServices
	ensuring.Writes, ensuring.OnDeferred, ensuring.OnHealthPorts = writes, metrics.CountDeferrals(in.Metrics), cluster.Pools.RequeueMembers
	balancers := loadbalancer.New(ensuring)
	cluster.EnableLoadBalancers(balancers, balancing)
	return balancers, nil
}

// serviceOptions selects the Services that Weir manages.
func serviceOptions(o Options, cfg config.Config, settings loadbalancer.Settings, client *azure.Client, namespace string) services.Options {
	b := services.Options{
		Class: o.LoadBalancerClass, AllowRemoval: o.AllowRemoval, Settings: settings.Settings, Namespace: namespace, ResyncPeriod: cfg.DriftPeriod(),
		AvailabilitySet: client.AvailabilitySet, Guarded: settings.SecurityGroup.Name != "",
		RequireEffectiveRestrictions: settings.RequireEffectiveRestrictions,
	}
	if len(cfg.Configurations) > 0 {
		b.Configurations = settings.Configurations
	}
	return b
}
