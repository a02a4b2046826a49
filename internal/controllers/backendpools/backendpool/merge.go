// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"

	"weir.dev/weir/api/v1alpha1"
)

// writtenStatuses are hashes of the statuses that this process may have written. If the API server has another one,
// another process has written it.
type writtenStatuses []uint64

// maxWrittenStatuses limits own. An older status counts as another process's and costs a read.
const maxWrittenStatuses = 4

func (w writtenStatuses) contains(s *v1alpha1.BackendPoolStatus) bool {
	return slices.Contains(w, statusHash(s))
}

func (w writtenStatuses) withStatus(s *v1alpha1.BackendPoolStatus) writtenStatuses {
	w = append(slices.Clone(w), statusHash(s))
	return w[max(0, len(w)-maxWrittenStatuses):]
}

var statusHashSeed = maphash.MakeSeed()

// statusHash returns a hash of the status as stored; the status itself would be too large.
func statusHash(s *v1alpha1.BackendPoolStatus) uint64 {
	text, err := json.Marshal(s)
	if err != nil {
		text = fmt.Append(nil, "no text: ", err) // never matches
	}
	return maphash.Bytes(statusHashSeed, text)
}

// mergeOtherRecord retains the record of another process until an attempt has read it. The caller holds e.mu.
func (e *Entry) mergeOtherRecord(other *v1alpha1.BackendPoolStatus) {
	if e.otherRecord == nil {
		e.otherRecord = &v1alpha1.BackendPoolStatus{}
	}
	MergeRecord(e.otherRecord, other)
	e.changeStatus(func(*v1alpha1.BackendPoolStatus) {})
}
