// SPDX-License-Identifier: Apache-2.0

package app

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/pool/schedule"
)

// syncStates provides the Synced conditions of BackendPools; see backendpool.Statuses.
type syncStates interface {
	Synced(yield func(of schedule.Ref, cond metav1.Condition))
}

// countStates counts BackendPools by the reason of their Synced condition.
func countStates(of syncStates) func() map[string]int {
	return func() map[string]int {
		count := map[string]int{}
		for _, reason := range v1alpha1.SyncedReasons {
			count[reason] = 0
		}
		of.Synced(func(_ schedule.Ref, cond metav1.Condition) { count[cond.Reason]++ })
		return count
	}
}

// listOutOfSync lists BackendPools that are out of sync. The condition keeps its time while only its reason
// changes.
func listOutOfSync(of syncStates) func() []metrics.OutOfSyncPool {
	return func() (pools []metrics.OutOfSyncPool) {
		of.Synced(func(of schedule.Ref, cond metav1.Condition) {
			switch {
			case cond.Status == metav1.ConditionTrue, cond.Reason == v1alpha1.ReasonPaused, cond.Reason == v1alpha1.ReasonDryRun:
			default:
				pools = append(pools, metrics.OutOfSyncPool{
					Namespace: of.Namespace, Name: of.Name, State: cond.Reason, Since: cond.LastTransitionTime.Time,
				})
			}
		})
		return pools
	}
}
