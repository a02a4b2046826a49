// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/internal/words"
)

// Told is published by the leader next to the journal, for readers without Azure credentials.
type Told struct {
	Word Word `json:"word"`
	// Answers is the last start request that was answered, with the result in State.
	Answers *Wish `json:"answers,omitempty"`
	// Phase is the next phase; StepsDone of Steps are complete.
	Phase   Phase    `json:"phase,omitempty"`
	Done    int      `json:"done,omitempty"`
	Steps   int      `json:"steps,omitempty"`
	Waits   []string `json:"waits,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Word is the state of a migration.
type Word string

// The states.
const (
	Listens   Word = "Listens"   // starts on request
	NoSKU     Word = "NoSKU"     // azure.json doesn't set loadBalancerSku: requests are ignored
	NotNeeded Word = "NotNeeded" // nothing is Basic
	Refused   Word = "Refused"   // the preflight failed
	GivenUp   Word = "GivenUp"   // Azure rejects it
	UnderWay  Word = "UnderWay"
	TakenBack Word = "TakenBack"
	Ended     Word = "Ended"
)

const (
	mostTold    = 16
	longestTold = 512
)

// Tell limits the reasons.
func Tell(word Word, reasons ...string) Told {
	t := Told{Word: word}
	t.Reasons = bounded(reasons)
	return t
}

// TellSteps is for a running migration.
func TellSteps(s Steps, done, of int) Told {
	t := Told{Word: UnderWay, Phase: s.Phase, Done: done, Steps: of}
	t.Waits = bounded(append(append([]string(nil), s.Stops...), s.Waits...))
	return t
}

func bounded(all []string) []string {
	var names []string
	for _, text := range all[:min(len(all), mostTold)] {
		names = append(names, words.Sentence(text, longestTold))
	}
	if more := len(all) - mostTold; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

// Then keeps an answered request, and its reasons if next comes from a process that has not read
// Azure.
func (t Told) Then(next Told) Told {
	next.Answers = t.Answers
	if next.Word == Listens && t.Answers != nil && (t.Word == Refused || t.Word == GivenUp || t.Word == NotNeeded) {
		return t
	}
	return next
}

// ParseTold returns false for empty or invalid text.
func ParseTold(text string) (Told, bool) {
	var t Told
	if text == "" || json.Unmarshal([]byte(text), &t) != nil || t.Word == "" {
		return Told{}, false
	}
	return t, true
}

// FormatTold returns the stored form.
func FormatTold(t Told) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // plain types
	}
	return string(text)
}
