// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// changesIn returns the changes that a write makes.
func changesIn(writes []parcel) []wholewrite.Change {
	var addresses, states bool
	for _, p := range writes {
		a, s := p.r.Todo.Changes()
		addresses, states = addresses || a, states || s
	}
	var all []wholewrite.Change
	if addresses {
		all = append(all, wholewrite.Addresses)
	}
	if states {
		all = append(all, wholewrite.AdminStates)
	}
	return all
}

// allowed reports whether what is to be written may be a part.
func allowed(may wholewrite.Leaves, todo poolwrite.Change) bool {
	addresses, states := todo.Changes()
	return may.Allow(addresses, states, len(todo.Downed) > 0)
}

func keys(parcels []parcel) []lb.PoolKey {
	all := make([]lb.PoolKey, len(parcels))
	for i, p := range parcels {
		all[i] = p.taken.pool
	}
	return all
}
