// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"

	"weir.dev/weir/internal/ratelimit"
)

// MergeOperations appends operations that no older one covers. One with a Service replaces one without.
func MergeOperations(older []Operation, newer ...Operation) []Operation {
	for _, op := range newer {
		if op.Admin {
			older = mergeAdmin(older, op)
			continue
		}
		if at := slices.IndexFunc(older, func(o Operation) bool { return o.isEquivalent(op) }); at >= 0 {
			older[at].ChangedAt = ratelimit.MinTime(older[at].ChangedAt, op.ChangedAt)
			older[at].New, older[at].OutOfSync = older[at].New || op.New, older[at].OutOfSync || op.OutOfSync
			older[at].Impact = op.Impact
			older[at].Exempt = older[at].Exempt || op.Exempt
			older[at].mergeCount += 1 + op.mergeCount
			continue
		}
		unowned := slices.IndexFunc(older, func(o Operation) bool {
			return o.isNew() && op.isNew() && o.Ref == op.Ref && o.Service == ServiceName{}
		})
		if unowned < 0 {
			older = append(older, op)
			continue
		}
		op.QueuedAt, op.ChangedAt = older[unowned].QueuedAt, ratelimit.MinTime(older[unowned].ChangedAt, op.ChangedAt)
		op.mergeCount += 1 + older[unowned].mergeCount
		op.New, op.OutOfSync = op.New || older[unowned].New, op.OutOfSync || older[unowned].OutOfSync
		op.Exempt = op.Exempt || older[unowned].Exempt
		older[unowned] = op
	}
	return older
}

func mergeAdmin(older []Operation, op Operation) []Operation {
	at := slices.IndexFunc(older, func(o Operation) bool { return o.Admin })
	if at < 0 {
		return append(older, op)
	}
	older[at] = op.mergeInto(older[at])
	return older
}
