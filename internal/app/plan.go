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
	p, err := newPlanning(o)
	if err != nil {
		return view.Plan{}, err
	}
	if err := p.gather(ctx); err != nil {
		return view.Plan{}, err
	}
	return p.rehearse(ctx)
}

func newPlanning(o PlanOptions) (*planning, error) {
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("--config: %w", err)}
	}
	if warning := ignored.Warning(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	if o.known, err = behaviourOf(o.Options); err != nil {
		return nil, err
	}
	settings, err := balancerSettings(cfg, o.ClusterName)
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	client, err := newAzure(o.Options, cfg)
	if err != nil {
		return nil, err
	}
	return &planning{PlanOptions: o, cfg: cfg, settings: settings, client: client}, nil
}

type planning struct {
	PlanOptions
	cfg      config.Config
	settings balancer.Settings
	client   *azure.Client
	cluster  *offline.Cluster
	objects  offline.Objects
	record   record.Record // zero if it cannot be read
	owners   publicip.OwnerStore
	private  privateip.Store
	left     leftpool.Store
}

// rehearse plans for the objects, loaded into an offline cluster.
func (p *planning) rehearse(ctx context.Context) (view.Plan, error) {
	p.cluster = offline.New(kube.Options{
		SubscriptionID: p.cfg.SubscriptionID, ResourceGroup: p.cfg.BackendResourceGroup(),
		ExcludeControlPlane: p.cfg.ExcludesMaster(), Draining: p.cfg.Signals(),
	})
	rehearsal := rehearse.New(balancer.Config{Settings: p.settings, PrivateLinks: privatelinks.New(p.client), Cluster: p.cluster.LoadBalancers(), Owners: p.owners, PrivateIPs: p.private, LeftPools: p.left, Owed: p.owed().Address, Behaviour: p.known}, p.client)
	namespace := offline.NamespaceOfNodePools(p.objects.Pools, systemNamespace)
	p.cluster.Rooms.Balance(rehearsal, balancingOf(p.Options, p.cfg, p.settings, p.client, namespace))
	for i := range p.objects.Services { // plan a named Service even if it is marked as dry run
		if s := &p.objects.Services[i]; p.Service != "" && p.scope().Has(s.Namespace, s.Name) && kubeview.DryRunValid(s) {
			delete(s.Annotations, kubeview.DryRunAnnotation)
		}
	}
	if len(p.Files) > 0 {
		p.cluster.AllowUnseen()
	}
	if err := p.cluster.Fill(p.objects); err != nil {
		return view.Plan{}, err
	}
	outcome, err := rehearse.Plan(ctx, rehearsal, p.cluster, p.scope(), p.cfg.SetsAdminState())
	if err != nil {
		return view.Plan{}, err
	}
	shown := view.OfAll(outcome)
	shown.Notes, shown.Stops = p.notes(outcome), p.stops(outcome)
	return shown, outcome.Incomplete()
}

func (p *planning) owed() *migration.Owed {
	j, err := p.record.Migration()
	if err != nil {
		return nil
	}
	return migration.OwedBy(j, p.record.Asked())
}

func (p *planning) scope() rehearse.Scope {
	return rehearse.Scope{Namespace: p.Namespace, Service: p.Service}
}
