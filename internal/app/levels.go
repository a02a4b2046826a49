// SPDX-License-Identifier: Apache-2.0

package app

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/poolschedule"
)

// levels provides the Synced conditions of BackendPools; see backendpool.Statuses.
type levels interface {
	Synced(yield func(of poolschedule.Ref, is metav1.Condition))
}

// states counts BackendPools by the reason of their Synced condition.
func states(of levels) func() map[string]int {
	return func() map[string]int {
		count := map[string]int{}
		for _, reason := range v1alpha1.SyncedReasons {
			count[reason] = 0
		}
		of.Synced(func(_ poolschedule.Ref, is metav1.Condition) { count[is.Reason]++ })
		return count
	}
}

// notLevel lists BackendPools that are out of sync. The condition keeps its time while only its reason
// changes.
func notLevel(of levels) func() []metrics.NotLevel {
	return func() (pools []metrics.NotLevel) {
		of.Synced(func(of poolschedule.Ref, is metav1.Condition) {
			switch {
			case is.Status == metav1.ConditionTrue, is.Reason == v1alpha1.ReasonPaused, is.Reason == v1alpha1.ReasonDryRun:
			default:
				pools = append(pools, metrics.NotLevel{
					Namespace: of.Namespace, Name: of.Name, State: is.Reason, Since: is.LastTransitionTime.Time,
				})
			}
		})
		return pools
	}
}
