// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/azure/privatelinks"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/kube/offline"
	"weir.dev/weir/internal/kube/record"
	kubeview "weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/migration"
	"weir.dev/weir/internal/privateip"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/rehearse/view"
)

// PlanOptions select what is planned.
type PlanOptions struct {
	Options
	// Namespace and Service limit the plan; empty means all. A Service without a namespace is in "default".
	Namespace, Service string
	// Files contain the objects, instead of a cluster; "-" is Stdin.
	Files []string
	Stdin io.Reader
	// ServerDryRun also validates the objects of the files at the API server.
	ServerDryRun bool
}

// Plan returns what the controller would change in Azure now. It writes nothing. If Azure returns an error,
// the plan is incomplete.
func Plan(ctx context.Context, o PlanOptions) (view.Plan, error) {
	if o.Service != "" && o.Namespace == "" {
		o.Namespace = metav1.NamespaceDefault
	}
	if err := o.checkNames(); err != nil {
		return view.Plan{}, err
	}
	p, err := newPlanner(o)
	if err != nil {
		return view.Plan{}, err
	}
	if err := p.readObjects(ctx); err != nil {
		return view.Plan{}, err
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
	client, err := newAzure(o.Options, cfg)
	if err != nil {
		return nil, err
	}
	return &planner{PlanOptions: o, cfg: cfg, settings: settings, client: client}, nil
}

type planner struct {
	PlanOptions
	cfg        config.Config
	settings   balancer.Settings
	client     *azure.Client
	cluster    *offline.Cluster
	objects    offline.Objects
	record     record.Record // zero if it cannot be read
	owners     publicip.OwnerStore
	privateIPs privateip.Store
	leftPools  leftpool.Store
}

// runDryRun plans for the objects, loaded into an offline cluster.
func (p *planner) runDryRun(ctx context.Context) (view.Plan, error) {
	p.cluster = offline.New(kube.Options{
		SubscriptionID: p.cfg.SubscriptionID, ResourceGroup: p.cfg.BackendResourceGroup(),
		ExcludeControlPlane: p.cfg.ShouldExcludeControlPlane(), Draining: p.cfg.Signals(),
	})
	rehearsal := rehearse.New(balancer.Config{Settings: p.settings, PrivateLinks: privatelinks.New(p.client), Cluster: p.cluster.LoadBalancers(), Owners: p.owners, PrivateIPs: p.privateIPs, LeftPools: p.leftPools, ReservedAddress: p.owedAddresses().Address, Behavior: p.knownBehavior}, p.client)
	namespace := offline.NamespaceOfNodePools(p.objects.Pools, systemNamespace)
	p.cluster.Controllers.EnableLoadBalancers(rehearsal, serviceOptions(p.Options, p.cfg, p.settings, p.client, namespace))
	for i := range p.objects.Services { // plan a named Service even if it is marked as dry run
		if s := &p.objects.Services[i]; p.Service != "" && p.planScope().HasService(s.Namespace, s.Name) && kubeview.DryRunValid(s) {
			delete(s.Annotations, kubeview.DryRunAnnotation)
		}
	}
	if len(p.Files) > 0 {
		p.cluster.AllowUnknown()
	}
	if err := p.cluster.AddObjects(p.objects); err != nil {
		return view.Plan{}, err
	}
	outcome, err := rehearse.Plan(ctx, rehearsal, p.cluster, p.planScope(), p.cfg.SetsAdminState())
	if err != nil {
		return view.Plan{}, err
	}
	shown := view.NewClusterPlan(outcome)
	shown.Notes, shown.Stops = p.listHints(outcome), p.listBlockers(outcome)
	return shown, outcome.CheckComplete()
}

func (p *planner) owedAddresses() *migration.AddressClaims {
	j, err := p.record.MigrationJournal()
	if err != nil {
		return nil
	}
	return migration.NewAddressClaims(j, p.record.MigrationRequests())
}

func (p *planner) planScope() rehearse.Scope {
	return rehearse.Scope{Namespace: p.Namespace, Service: p.Service}
}
