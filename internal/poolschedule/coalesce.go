// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "slices"

// Coalesce appends newer operations, unless an older one covers them. An operation with a Service
// replaces one of the same BackendPool without.
func Coalesce(older []Operation, newer ...Operation) []Operation {
	for _, op := range newer {
		if op.Admin {
			older = coalesceAdmin(older, op)
			continue
		}
		if at := slices.IndexFunc(older, func(o Operation) bool { return o.covers(op) }); at >= 0 {
			older[at].ChangedAt = Earlier(older[at].ChangedAt, op.ChangedAt)
			older[at].New, older[at].Differs = older[at].New || op.New, older[at].Differs || op.Differs
			older[at].Stake = op.Stake
			older[at].Exempt = older[at].Exempt || op.Exempt
			older[at].absorbed += 1 + op.absorbed
			continue
		}
		unowned := slices.IndexFunc(older, func(o Operation) bool {
			return o.fresh() && op.fresh() && o.Ref == op.Ref && o.Service == ServiceName{}
		})
		if unowned < 0 {
			older = append(older, op)
			continue
		}
		op.QueuedAt, op.ChangedAt = older[unowned].QueuedAt, Earlier(older[unowned].ChangedAt, op.ChangedAt)
		op.absorbed += 1 + older[unowned].absorbed
		op.New, op.Differs = op.New || older[unowned].New, op.Differs || older[unowned].Differs
		op.Exempt = op.Exempt || older[unowned].Exempt
		older[unowned] = op
	}
	return older
}

// coalesceAdmin keeps a pool's newest admin operation.
func coalesceAdmin(older []Operation, op Operation) []Operation {
	at := slices.IndexFunc(older, func(o Operation) bool { return o.Admin })
	if at < 0 {
		return append(older, op)
	}
	older[at] = op.absorb(older[at])
	return older
}
