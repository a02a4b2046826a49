// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/azure/privatelinks"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
)

func balancerSettings(cfg config.Config, cluster string) (balancer.Settings, error) {
	if err := cfg.CheckClusterName(cluster); err != nil {
		return balancer.Settings{}, err
	}
	s := balancer.Settings{
		Settings: service.Settings{
			ClusterName:    cluster,
			PrivateLinks:   cfg.PrivateLinkServices(),
			PublicIPs:      lb.ResourceID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.ResourceGroup},
			VirtualNetwork: cfg.VirtualNetworkID(), Subnet: cfg.SubnetName,
			Interfaces: cfg.Interfaces(), Converts: cfg.Converts(), DisableOutboundSNAT: cfg.DisableOutboundSNAT, Tags: cfg.ResourceTags(),
		},
		Place:     lb.LoadBalancerID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup()},
		Location:  cfg.Location,
		MostRules: cfg.MostRules(), RulesBy: cfg.RulesBy(),

		SecurityGroup: cfg.SecurityGroup(), RequireEffectiveRestrictions: cfg.RequireEffectiveRestrictions,
		PodSubnets: cfg.PodSubnetNames, MostPrivateLinks: cfg.MostPrivateLinks(), OpensSubnets: cfg.DisableSubnetPolicies,
	}
	if cfg.SharesProbe() {
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
			matches, err := view.Selector(sel.from)
			if err != nil {
				return balancer.Settings{}, fmt.Errorf("multipleStandardLoadBalancerConfigurations: %s: %w", c.Name, err)
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

func newBalancers(o Options, in Surroundings, client *azure.Client, cluster *kube.Cluster, lanes *poolupdate.Lanes, locker poolupdate.Lease, overtaken func(resource string, settled bool), writes *pace.Budgets, record recorded) error {
	cfg := in.Config
	settings, err := balancerSettings(cfg, o.ClusterName)
	if err != nil {
		return &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	ensuring := balancer.Config{
		Settings: settings, Azure: client, PrivateLinks: privatelinks.New(client), Lanes: lanes, Cluster: cluster.Services, Owners: record.publicIPOwners(), PrivateIPs: record.privateIPs(), LeftPools: record.leftPools(o.Log), Owed: record.owed.Address, Behaviour: o.known,
		Done: cluster.Services.Ensured, Made: func(id lb.LoadBalancerID) { services.LoadBalancerMade(cluster.Services, id) }, Overtaken: overtaken, Log: o.Log,
	}
	if locker != nil {
		ensuring.Lease = locker
	}
	balancing := balancingOf(o, cfg, settings, client, record.namespace)
	if !balancing.Guarded {
		o.Log.Info("azure.json names no securityGroupName: security groups are left alone, and nothing of them says who may connect to a Service")
	}
	balancing.Rehearse = rehearse.NewRehearsals(ensuring).Next
	ensuring.Writes, ensuring.Deferred = writes, metrics.CountDeferrals(in.Metrics)
	balancers := balancer.New(ensuring)
	metrics.RegisterRules(in.Metrics, balancers.Rules, cfg.MostRules())
	if cfg.Interfaces() {
		metrics.RegisterMachineRules(in.Metrics, balancers.MachineRules, lb.MaxMachineRules)
	}
	cluster.Balance(balancers, balancing)
	return nil
}

// balancingOf selects the Services that Weir manages.
func balancingOf(o Options, cfg config.Config, settings balancer.Settings, client *azure.Client, namespace string) services.Options {
	b := services.Options{
		Class: o.LoadBalancerClass, AllowRemoval: o.AllowRemoval, Settings: settings.Settings, Namespace: namespace, LookAgainAfter: cfg.DriftPeriod(),
		AvailabilitySet: client.AvailabilitySet, Guarded: settings.SecurityGroup.Name != "",
		RequireEffectiveRestrictions: settings.RequireEffectiveRestrictions,
	}
	if len(cfg.Configurations) > 0 {
		b.Several = settings.Configurations
	}
	return b
}
