// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/internal/words"
)

// Told is what a Weir that leads says of the migration of its cluster. It is kept beside the journal, for who
// has no credentials of Azure and is somewhere else.
type Told struct {
	Word Word `json:"word"`
	// Answers is the last wish to begin that was answered, with what Word says.
	Answers *Wish `json:"answers,omitempty"`
	// Phase is what is done next, after Done of Steps.
	Phase Phase `json:"phase,omitempty"`
	Done  int   `json:"done,omitempty"`
	Steps int   `json:"steps,omitempty"`
	// Waits is what is waited for, and Reasons are why it has not begun, or was given up.
	Waits   []string `json:"waits,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// Word is how it stands, in a word.
type Word string

// The words.
const (
	Listens   Word = "Listens"   // it begins once somebody asks
	NoSKU     Word = "NoSKU"     // azure.json does not say loadBalancerSku: nobody is heard
	NotNeeded Word = "NotNeeded" // nothing is Basic
	Refused   Word = "Refused"   // something keeps it from starting
	GivenUp   Word = "GivenUp"   // Azure does not let it
	UnderWay  Word = "UnderWay"
	TakenBack Word = "TakenBack"
	Ended     Word = "Ended"
)

const (
	// mostTold bounds how many reasons are told, and longestTold each of them.
	mostTold    = 16
	longestTold = 512
)

// Tell returns what is told with these reasons, within bounds.
func Tell(word Word, reasons ...string) Told {
	t := Told{Word: word}
	t.Reasons = bounded(reasons)
	return t
}

// TellSteps returns what is told while a migration is under way.
func TellSteps(s Steps, done, of int) Told {
	t := Told{Word: UnderWay, Phase: s.Phase, Done: done, Steps: of}
	t.Waits = bounded(append(append([]string(nil), s.Stops...), s.Waits...))
	return t
}

func bounded(all []string) []string {
	var some []string
	for _, text := range all[:min(len(all), mostTold)] {
		some = append(some, words.Sentence(text, longestTold))
	}
	if more := len(all) - mostTold; more > 0 {
		some = append(some, fmt.Sprintf("and %d more", more))
	}
	return some
}

// Then returns what is on record once next is told as well. What was answered stays, and so does why, where next is
// of a Weir that has not looked.
func (t Told) Then(next Told) Told {
	next.Answers = t.Answers
	if next.Word == Listens && t.Answers != nil && (t.Word == Refused || t.Word == GivenUp || t.Word == NotNeeded) {
		return t
	}
	return next
}

// ParseTold reads what FormatTold has written. It is false of what nobody has told, or nobody can read.
func ParseTold(text string) (Told, bool) {
	var t Told
	if text == "" || json.Unmarshal([]byte(text), &t) != nil || t.Word == "" {
		return Told{}, false
	}
	return t, true
}

// FormatTold returns it as it is kept.
func FormatTold(t Told) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // values of plain types
	}
	return string(text)
}
