// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool/members"
)

// own are the statuses of a BackendPool that this process has written, or may have: the
// API holds one of them, or another process has written since.
type own []uint64

// mostOwn bounds them. What is left out counts as another's, which costs a look.
const mostOwn = 4

// has reports whether a status is one of them.
func (o own) has(s *v1alpha1.BackendPoolStatus) bool { return slices.Contains(o, storedAs(s)) }

// with returns them with one that is about to be written.
func (o own) with(s *v1alpha1.BackendPoolStatus) own {
	o = append(slices.Clone(o), storedAs(s))
	return o[max(0, len(o)-mostOwn):]
}

var ownSeed = maphash.MakeSeed()

// storedAs stands for a status as the API holds it: all of it would be as large as the status.
func storedAs(s *v1alpha1.BackendPoolStatus) uint64 {
	text, err := json.Marshal(s)
	if err != nil {
		text = fmt.Append(nil, "no text: ", err) // it is nobody's
	}
	return maphash.Bytes(ownSeed, text)
}

// learn keeps what another process has recorded, until an attempt has seen it: no report of
// one that had not takes it out of the ledger. The caller holds e.mu.
func (e *Entry) learn(other *v1alpha1.BackendPoolStatus) {
	if e.learnt == nil {
		e.learnt = &v1alpha1.BackendPoolStatus{}
	}
	members.Unite(e.learnt, other)
	e.amend(func(*v1alpha1.BackendPoolStatus) {})
}
