// SPDX-License-Identifier: Apache-2.0

package simulate

import "fmt"

// leaderFreezeEvent freezes the leader. The lease lasts 15 s, the fence closes after 10 s, and another replica
// leads within 17 s.
func leaderFreezeEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" || !w.replicas {
		return nil
	}
	lines := []string{
		w.scaleStep([]string{service}, w.randomNodes()),
		fmt.Sprintf("clock %dms", 250+w.r.IntN(oneOf(w, 150, 3000))),
		"freeze",
	}
	if w.r.IntN(3) == 0 { // a request in flight arrives
		lines = append([]string{fmt.Sprintf("lose-answer late=%ds pool=%s times=1", 1+w.r.IntN(30), poolName(pool))}, lines...)
	}
	for range 1 + w.r.IntN(3) {
		lines = append(lines, fmt.Sprintf("clock %dms", w.r.IntN(oneOf(w, 8000, 20_000))), w.scaleStep([]string{service}, w.randomNodes()))
	}
	return append(lines, fmt.Sprintf("clock %dms", w.r.IntN(5000)), "thaw")
}
