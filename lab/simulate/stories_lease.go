// SPDX-License-Identifier: Apache-2.0

package simulate

import "fmt"

// Sequences of the resource lease.

// leaseEnds ends the lease during an attempt: another client takes it, renewal fails, or the
// machine is suspended.
func leaseEnds(w *world) []string {
	service, pool := w.served()
	if service == "" || w.term == 0 {
		return nil
	}
	by := w.term*1000/3 + w.r.IntN(w.term*1000)
	lines := []string{
		fmt.Sprintf("slow on=GET pool=%s by=%dms times=1", bare(pool), by),
		w.scale([]string{service}, w.someNodes()),
		fmt.Sprintf("clock %dms", 300+w.r.IntN(3000)),
	}
	suspend := fmt.Sprintf("suspend %ds", w.term/2+w.r.IntN(2*w.term))
	switch w.r.IntN(4) {
	case 0:
		return append(lines, fmt.Sprintf("lease take steal for=%ds", 1+w.r.IntN(90)))
	case 1:
		return append(lines, fmt.Sprintf("lease fail for=%ds", w.term+w.r.IntN(w.term)))
	case 2:
		lines[0] = fmt.Sprintf("lease slow by=%dms for=10s", 1000+w.r.IntN(4000))
	}
	return append(lines, suspend)
}

// quarrel repeatedly steals the lease for a full resync, and removes a managed address.
func quarrel(w *world) []string {
	service, pool := w.served()
	if service == "" || w.term == 0 {
		return nil
	}
	lines := []string{
		fmt.Sprintf("slow on=GET pool=%s by=%ds for=10m", bare(pool), w.term/3+1+w.r.IntN(10)),
		fmt.Sprintf("conflict pool=%s remove=%s", bare(pool), w.node()),
	}
	for range 12 + w.r.IntN(12) {
		lines = append(lines, fmt.Sprintf("lease take steal for=%ds", 2+w.r.IntN(15)), fmt.Sprintf("clock %ds", 15+w.r.IntN(30)))
	}
	return lines
}
