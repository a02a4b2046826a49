// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/pods"
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/observe/metrics"
)

// addReadinessGates enables readiness gates. Its client is not fenced: standbys open gates while no process leads.
func addReadinessGates(o Options, in Dependencies, rc *rest.Config, cluster *controllers.Cluster, mgr ctrl.Manager, fence *leader.Fence) error {
	if !o.ReadinessGates {
		return nil
	}
	api, err := client.New(rc, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("client for readiness gates: %w", err)
	}
	var reasons []string
	for _, r := range pods.Reasons() {
		reasons = append(reasons, string(r))
	}
	count := metrics.NewReadinessGates(in.Metrics, reasons)
	gates, err := pods.Enable(mgr, api, pods.Config{
		View: cluster.View, Pools: cluster.Pools.Controller, Rules: cluster.Ownership, Backoff: o.Requeue, Log: o.Log,
		IsSynced: func() bool { return cluster.Synced(nil) == nil }, CountOpened: func(r pods.Reason) { count(string(r)) },
		Leader: func() (isLeader bool, unrenewed time.Duration) { return leaderState(fence) },
	})
	if err != nil {
		return err
	}
	cluster.Pools.MembersShown = gates.RequeueWaiting
	cluster.AddRetry(gates.RetryFailed)
	metrics.RegisterWaitingGates(in.Metrics, gates.CountWaiting)
	return nil
}

// leaderState returns whether this process leads, and otherwise the time since the last renewal that it observed. A
// process with an ended term opens no gate: it did not watch the Lease as the leader.
func leaderState(fence *leader.Fence) (isLeader bool, unrenewed time.Duration) {
	if fence == nil {
		return true, 0
	}
	if fence.EndReason() != nil {
		return false, 0
	}
	if _, isLeader = fence.Epoch(); isLeader {
		return true, 0
	}
	return false, fence.SinceRenewed()
}
