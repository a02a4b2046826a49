// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"weir.dev/weir/internal/poolupdate"

	"weir.dev/weir/internal/poolschedule"
)

// toldStatus is what a status says of what people have heard: it outlives the process.
type toldStatus struct {
	// word is the last one to the Service; empty if there was none.
	word string
	// givenUpFor is what the last change was given up for; empty if it was not.
	givenUpFor string
}

// after is what is told once a report was heard.
func (t toldStatus) after(r poolupdate.Report) toldStatus {
	for _, said := range saidOf(r) {
		if len(said.to) > 0 {
			t.word = said.word
		}
	}
	t.givenUpFor = r.GivenUpFor
	return t
}

// recalled is what a process that begins knows of it.
func (t toldStatus) recalled() poolschedule.Told {
	return poolschedule.Told{Failure: t.word == "Retrying" || t.word == "Failed", GivenUpFor: t.givenUpFor}
}

// said is one word of an attempt, and whom it is for.
type said struct {
	word string
	to   []poolschedule.ServiceName
}

// saidOf are the words of an attempt, the last one last.
func saidOf(r poolupdate.Report) []said {
	return []said{{"Updated", r.Updated}, {"Retrying", r.Retrying}, {"Failed", r.Failed}}
}

// remembers gives a pool back what its status says, once a process has forgotten the rest.
// The caller holds the stage's mu.
func (k *pool) remembers(b *binding) {
	k.patience, k.surrender = b.notBefore, b.told.givenUpFor
	if b.told.word != "" && b.service != "" {
		k.words = map[string]string{b.service: b.told.word}
	}
}
