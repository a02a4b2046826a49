// SPDX-License-Identifier: Apache-2.0

package services

import "weir.dev/weir/internal/servicelb"

// States counts the Services that have a load balancer of Weir's, or are to have one,
// by state.
func (r *Reconciler) States() map[string]int {
	count := map[string]int{}
	for is, n := range r.decide.States.Count() {
		count[string(is)] = n
	}
	return count
}

// Contested counts those of which somebody else keeps undoing something.
func (r *Reconciler) Contested() int { return r.States()[string(servicelb.Contested)] }

// Known reports whether a Service has a load balancer of Weir's, as far as this process knows, and
// the UID of that Service.
func (r *Reconciler) Known(name string) (uid string, known bool) { return r.decide.States.Known(name) }
