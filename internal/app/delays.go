// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/nodes"
)

// newDeletionDelays returns what delays the deletion of nodes by the cluster autoscaler.
func newDeletionDelays(o Options, cfg config.Config, cluster *controllers.Cluster, mgr ctrl.Manager) (func(context.Context), error) {
	switch {
	case !o.DelayNodeDeletion:
		return func(context.Context) {}, nil
	case !cfg.SetsAdminState():
		return nil, &UsageError{Err: errors.New("--delay-node-deletion waits until nodes are Down, and azure.json has enableNodeAdminState: false: remove one of the two")}
	}
	d := nodes.DeletionDelays{Nodes: cluster.View, Writer: mgr.GetClient(), ListMembers: cluster.Pools.ListMembers, Log: o.Log}
	return d.Run, nil
}
