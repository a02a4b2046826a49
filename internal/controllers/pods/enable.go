// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
)

// Enable adds a Reconciler with a cache of pods to the manager. The cache of the manager must have cache.KeepSelectors. api must
// also write while this process does not lead. Call it before the manager starts.
func Enable(mgr manager.Manager, api client.Client, c Config) (*Reconciler, error) {
	options := cache.PodOptions(mgr.GetScheme())
	options.HTTPClient, options.Mapper = mgr.GetHTTPClient(), mgr.GetRESTMapper()
	var err error
	if c.Pods, err = ctrlcache.New(mgr.GetConfig(), options); err != nil {
		return nil, fmt.Errorf("cache of pods: %w", err)
	}
	c.Status = api.Status()
	r := New(c)
	if err := r.Setup(mgr); err != nil {
		return nil, err
	}
	return r, mgr.Add(inAllProcesses(func(ctx context.Context) error {
		r.checkAccess(ctx, api)
		return nil
	}))
}

type inAllProcesses manager.RunnableFunc

// Start implements manager.Runnable.
func (i inAllProcesses) Start(ctx context.Context) error { return i(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (inAllProcesses) NeedLeaderElection() bool { return false }

// checkAccess logs what keeps readiness gates from working.
func (r *Reconciler) checkAccess(ctx context.Context, api client.Client) {
	_, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}, "v1")
	if meta.IsNoMatchError(err) {
		r.cfg.Log.WarnContext(ctx, "the API server does not serve MutatingAdmissionPolicy of admissionregistration.k8s.io/v1, so no pod gets a readiness gate: "+
			"use Kubernetes 1.36 or later, or set spec.readinessGates and the label "+metadata.GateLabel+" in the pod templates")
	}
	err = api.List(ctx, &corev1.PodList{}, client.Limit(1), client.MatchingLabels{metadata.GateLabel: metadata.GateLabelValue})
	if apierrors.IsForbidden(err) {
		r.cfg.Log.ErrorContext(ctx, "--readiness-gates: Weir may not read pods, so pods with a readiness gate never become ready: "+
			"kubectl apply --server-side -k config/readiness-gates, or with Helm readinessGates.enabled=true", "err", err)
	}
}
