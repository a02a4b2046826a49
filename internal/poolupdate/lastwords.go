// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"slices"

	"weir.dev/weir/internal/poolschedule"
)

// lastWords is each Service's last notification about a pool. With the usual single Service, a map
// would take ten times the memory.
type lastWords []lastWord

type lastWord struct {
	service poolschedule.ServiceName
	word    poolschedule.Word
}

func (l lastWords) of(s poolschedule.ServiceName) int {
	return slices.IndexFunc(l, func(is lastWord) bool { return is.service == s })
}

func (l lastWords) has(s poolschedule.ServiceName) bool { return l.of(s) >= 0 }

func (l lastWords) with(s poolschedule.ServiceName, word poolschedule.Word) lastWords {
	if i := l.of(s); i >= 0 {
		l[i].word = word
		return l
	}
	return append(l, lastWord{s, word})
}

func (l lastWords) all() map[poolschedule.ServiceName]poolschedule.Word {
	all := make(map[poolschedule.ServiceName]poolschedule.Word, len(l))
	for _, is := range l {
		all[is.service] = is.word
	}
	return all
}
