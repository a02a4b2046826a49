// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"strings"
	"sync"
)

const (
	maxLength = 64
	// maxEntries limits the table to two megabytes.
	maxEntries = 20_000
)

var table = struct {
	sync.Mutex
	texts map[string]string
}{texts: map[string]string{}}

// Intern returns an interned copy, for retained strings: a lookup is slower than a comparison.
// Package intern drops strings without a retained handle.
func Intern[T ~string](text T) T {
	if text == "" || len(text) > maxLength {
		return text
	}
	table.Lock()
	defer table.Unlock()
	if interned, ok := table.texts[string(text)]; ok {
		return T(interned)
	}
	if len(table.texts) >= maxEntries {
		clear(table.texts)
	}
	clone := strings.Clone(string(text))
	table.texts[clone] = clone
	return T(clone)
}
