// SPDX-License-Identifier: Apache-2.0

// Package once interns short strings that thousands of objects share.
package once

import (
	"strings"
	"sync"
)

const (
	longest = 64
	// most limits the table to two megabytes.
	most = 20_000
)

var known = struct {
	sync.Mutex
	texts map[string]string
}{texts: map[string]string{}}

// Text returns an interned copy, for retained strings: a lookup is slower than a comparison.
// Package unique drops strings without a retained handle.
func Text[T ~string](text T) T {
	if text == "" || len(text) > longest {
		return text
	}
	known.Lock()
	defer known.Unlock()
	if interned, there := known.texts[string(text)]; there {
		return T(interned)
	}
	if len(known.texts) >= most {
		clear(known.texts)
	}
	clone := strings.Clone(string(text))
	known.texts[clone] = clone
	return T(clone)
}
