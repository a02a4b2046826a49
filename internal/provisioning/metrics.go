// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// Results lists the attempt results in metrics order.
var Results = []policy.Result{policy.ResultSucceeded, policy.ResultFailed, policy.ResultInvalid}

func (a *attemptTracker) countResult(r policy.Result) {
	if i := slices.Index(Results, r); i >= 0 {
		a.results[i].Add(1)
	}
}

// AttemptCount returns the number of attempts with this result in this process.
func (r *Reconciler) AttemptCount(result string) uint64 {
	if i := slices.Index(Results, policy.Result(result)); i >= 0 {
		return r.attempts.results[i].Load()
	}
	return 0
}

// ProbeCounts returns the number of reachability probes that succeeded and failed.
func (r *Reconciler) ProbeCounts() (reachable, unreachable uint64) {
	return r.probes.succeeded.Load(), r.probes.failed.Load()
}

// StateCounts counts Provisions by state and returns the age of the oldest unfinished one, in linear
// time.
func (r *Reconciler) StateCounts(now time.Time) (states map[string]int, oldest time.Duration) {
	states = map[string]int{}
	var list v1alpha1.ProvisionList
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // do not wait for a cache that is not synced
	if err := r.Cached.List(ctx, &list); err != nil {
		return states, 0
	}
	for i := range list.Items {
		p := &list.Items[i]
		state := p.Status.State
		if state == "" {
			state = "Pending"
		}
		states[state]++
		if state == "Pending" || state == v1alpha1.ProvisionRunning || state == v1alpha1.ProvisionWaiting {
			oldest = max(oldest, now.Sub(p.CreationTimestamp.Time))
		}
	}
	return states, oldest
}
