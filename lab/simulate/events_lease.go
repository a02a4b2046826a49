// SPDX-License-Identifier: Apache-2.0

package simulate

import "fmt"

// leaseEndEvent: another client takes it, renewal fails, or the machine is suspended.
func leaseEndEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" || w.leaseSeconds == 0 {
		return nil
	}
	by := w.leaseSeconds*1000/3 + w.r.IntN(w.leaseSeconds*1000)
	lines := []string{
		fmt.Sprintf("slow on=GET pool=%s by=%dms times=1", poolName(pool), by),
		w.scaleStep([]string{service}, w.randomNodes()),
		fmt.Sprintf("clock %dms", 300+w.r.IntN(3000)),
	}
	suspend := fmt.Sprintf("suspend %ds", w.leaseSeconds/2+w.r.IntN(2*w.leaseSeconds))
	switch w.r.IntN(4) {
	case 0:
		return append(lines, fmt.Sprintf("lease take steal for=%ds", 1+w.r.IntN(90)))
	case 1:
		return append(lines, fmt.Sprintf("lease fail for=%ds", w.leaseSeconds+w.r.IntN(w.leaseSeconds)))
	case 2:
		lines[0] = fmt.Sprintf("lease slow by=%dms for=10s", 1000+w.r.IntN(4000))
	}
	return append(lines, suspend)
}

// leaseConflictEvent steals the lease repeatedly for a full resync.
func leaseConflictEvent(w *scheduleBuilder) []string {
	service, pool := w.poolWithService()
	if service == "" || w.leaseSeconds == 0 {
		return nil
	}
	lines := []string{
		fmt.Sprintf("slow on=GET pool=%s by=%ds for=10m", poolName(pool), w.leaseSeconds/3+1+w.r.IntN(10)),
		fmt.Sprintf("conflict pool=%s remove=%s", poolName(pool), w.randomNode()),
	}
	for range 12 + w.r.IntN(12) {
		lines = append(lines, fmt.Sprintf("lease take steal for=%ds", 2+w.r.IntN(15)), fmt.Sprintf("clock %ds", 15+w.r.IntN(30)))
	}
	return lines
}
