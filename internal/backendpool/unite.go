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

// own are hashes of the statuses that this process may have written. If the API server has another one,
// another process has written it.
type own []uint64

// mostOwn limits own. An older status counts as another process's and costs a read.
const mostOwn = 4

func (o own) has(s *v1alpha1.BackendPoolStatus) bool { return slices.Contains(o, storedAs(s)) }

func (o own) with(s *v1alpha1.BackendPoolStatus) own {
	o = append(slices.Clone(o), storedAs(s))
	return o[max(0, len(o)-mostOwn):]
}

var ownSeed = maphash.MakeSeed()

// storedAs returns a hash of the status as stored; the status itself would be too large.
func storedAs(s *v1alpha1.BackendPoolStatus) uint64 {
	text, err := json.Marshal(s)
	if err != nil {
		text = fmt.Append(nil, "no text: ", err) // never matches
	}
	return maphash.Bytes(ownSeed, text)
}

// learn retains the record of another process until an attempt has read it. The caller holds e.mu.
func (e *Entry) learn(other *v1alpha1.BackendPoolStatus) {
	if e.learnt == nil {
		e.learnt = &v1alpha1.BackendPoolStatus{}
	}
	members.Unite(e.learnt, other)
	e.amend(func(*v1alpha1.BackendPoolStatus) {})
}
