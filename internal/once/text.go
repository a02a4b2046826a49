// SPDX-License-Identifier: Apache-2.0

// Package once keeps short texts in memory once that ten thousand objects have in common: names and
// addresses of nodes, names of load balancers, words of conditions.
package once

import (
	"strings"
	"sync"
)

const (
	// longest is the longest text that is shared: what is longer is an object's own as a rule.
	longest = 64
	// most bounds how many texts are known, so that what nobody has any more takes two megabytes at most.
	most = 20_000
)

var known = struct {
	sync.Mutex
	texts map[string]string
}{texts: map[string]string{}}

// Text returns a text whose memory all share that have the same. It is for what is kept: to look one up
// takes longer than to compare two. Package unique does not serve here, for it forgets a text of which
// nobody keeps the handle.
func Text[T ~string](text T) T {
	if text == "" || len(text) > longest {
		return text
	}
	known.Lock()
	defer known.Unlock()
	if is, there := known.texts[string(text)]; there {
		return T(is)
	}
	if len(known.texts) >= most {
		clear(known.texts)
	}
	own := strings.Clone(string(text))
	known.texts[own] = own
	return T(own)
}
