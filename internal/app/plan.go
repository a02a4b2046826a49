// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers"
	kubeview "weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/skumigration"
)

// PlanOptions select what is planned.
type PlanOptions struct {
	Options
	// Namespace and Service limit the plan; empty means all. A Service without a namespace is in "default".
	Namespace, Service string
	// Files contain the objects, instead of a cluster; "-" is Stdin.
	Files []string
	Stdin io.Reader
	// LoadConfig returns the address of the cluster; nil is that of Kubeconfig.
	LoadConfig func() (*rest.Config, error)
	// ServerDryRun also validates the objects of the files at the API server.
	ServerDryRun bool
}

func (o PlanOptions) clusterConfig() (*rest.Config, error) {
	if o.LoadConfig != nil {
		return o.LoadConfig()
	}
	rc, _, err := process.ClusterConfig(o.Kubeconfig)
	return rc, err
}

// Plan returns what the controller would change in Azure now. It writes nothing. If Azure returns an error,
// the plan is incomplete.
func Plan(ctx context.Context, o PlanOptions) (dryrun.Report, error) {
	if o.Service != "" && o.Namespace == "" {
		o.Namespace = metav1.NamespaceDefault
	}
	if err := o.checkNames(); err != nil {
		return dryrun.Report{}, err
	}
	if gateway, ok := strings.CutPrefix(o.Service, "gateway/"); ok {
		o.Service = service.GatewayServiceName(gateway)
	}
	p, err := newPlanner(o)
	if err != nil {
		return dryrun.Report{}, err
	}
	if err := p.readObjects(ctx); err != nil {
		return dryrun.Report{}, err
	}
	return p.runDryRun(ctx)
}

func newPlanner(o PlanOptions) (*planner, error) {
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("--config: %w", err)}
	}
	if warning := ignored.WarningText(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	if o.knownBehavior, err = loadBehavior(o.Options); err != nil {
		return nil, err
	}
	settings, err := loadBalancerSettings(cfg, o.ClusterName)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	client, err := NewClient(o.Options, cfg)
	if err != nil {
		return nil, err
	}
	o.zones = newRegions(o.Options, cfg, client)
	return &planner{PlanOptions: o, cfg: cfg, settings: settings, client: client}, nil
}

type planner struct {
	PlanOptions
	cfg        config.Config
	settings   loadbalancer.Settings
	client     *azure.Client
	cluster    *offline.Cluster
	objects    offline.Objects
	noGateways bool         // the user may not list Gateways
	warnings   []string     // of the files
	record     store.Record // zero if it cannot be read
	owners     publicip.OwnerStore
	privateIPs loadbalancer.PrivateIPStore
	leftPools  loadbalancer.LeftPoolStore
}

// runDryRun plans for the objects, loaded into an offline cluster.
func (p *planner) runDryRun(ctx context.Context) (dryrun.Report, error) {
	p.cluster = offline.New(controllers.Options{
		SubscriptionID: p.cfg.NetworkSubscriptionID(), ResourceGroup: p.cfg.BackendResourceGroup(),
		ExcludeControlPlane: p.cfg.ShouldExcludeControlPlane(), Draining: p.cfg.Signals(),
	})
	simulator := dryrun.New(loadbalancer.Config{Settings: p.settings, PrivateLinks: azure.NewPrivateLinkClient(p.client), Cluster: p.cluster.LoadBalancers(), Owners: p.owners, PrivateIPs: p.privateIPs, LeftPools: p.leftPools, ReservedAddress: p.owedAddresses().Address, Zones: p.zones}, p.client)
	namespace := offline.NamespaceOfNodePools(p.objects.Pools, systemNamespace)
	p.cluster.Controllers.EnableLoadBalancers(simulator, serviceOptions(p.Options, p.cfg, p.settings, p.client, namespace))
	for i := range p.objects.Services { // plan a named Service even if it is marked as dry run
		if s := &p.objects.Services[i]; p.Service != "" && p.planScope().HasService(s.Namespace, s.Name) && kubeview.DryRunValid(s) {
			delete(s.Annotations, metadata.DryRunAnnotation)
		}
	}
	if len(p.Files) > 0 {
		p.cluster.AllowUnknown()
	}
	if err := p.cluster.AddObjects(p.objects); err != nil {
		return dryrun.Report{}, err
	}
	problems, err := p.addGateways(ctx)
	if err != nil {
		return dryrun.Report{}, err
	}
	outcome, err := dryrun.Plan(ctx, simulator, p.cluster, p.planScope(), p.cfg.SetsAdminState())
	if err != nil {
		return dryrun.Report{}, err
	}
	shown := dryrun.NewClusterReport(outcome)
	quotas, unknown := p.listRegionLimits(ctx, outcome.Changes)
	shown.Limits = append(shown.Limits, quotas...)
	problems = append(problems, unknown...)
	shown.Notes, shown.Stops = append(p.listHints(outcome), problems...), p.listBlockers(outcome)
	if ips, err := p.client.ListPublicIPs(ctx, p.cfg.NetworkSubscriptionID(), p.cfg.ResourceGroup); err == nil { // a failure is that of the plan
		if n := len(publicip.ListRetained(ips, p.ClusterName)); n > 0 {
			shown.Notes = append(shown.Notes, fmt.Sprintf("%s retained for former Services: weir address list shows them", formatCount(n, "public IP")))
		}
	}
	if n := countRetained(ctx, simulator, p.settings.Place); n > 0 {
		shown.Notes = append(shown.Notes, fmt.Sprintf("%s retained for former Services: weir address list shows them", formatCount(n, "private address")))
	}
	return shown, outcome.CheckComplete()
}

// countRetained counts the retained private addresses. A failure is that of the plan.
func countRetained(ctx context.Context, simulator *dryrun.Simulator, place lb.LoadBalancerID) (n int) {
	loadBalancers, _ := simulator.Shadow.ListLoadBalancers(ctx, place.SubscriptionID, place.ResourceGroup)
	for _, b := range loadBalancers {
		if slices.Contains(simulator.Names(), b.ID.Name) {
			n += len(b.RetainedAddresses())
		}
	}
	return n
}

func (p *planner) owedAddresses() *skumigration.AddressClaims {
	j, err := p.record.MigrationJournal()
	if err != nil {
		return nil
	}
	return skumigration.NewAddressClaims(j, p.record.MigrationRequests())
}

func (p *planner) planScope() dryrun.Scope {
	return dryrun.Scope{Namespace: p.Namespace, Service: p.Service}
}
