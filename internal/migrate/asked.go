// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"
	"time"
)

// Asked is what people have asked of a migration. It is kept beside the journal, and they write it.
type Asked struct {
	// Stop keeps it from its next step until it is taken back, or has all be taken back that was done.
	Stop *Wish `json:"stop,omitempty"`
	// Run has it begin where azure.json says that it does not by itself. It is taken out once it was heard.
	Run *Wish `json:"run,omitempty"`
	// GivenUp are addresses that are owed, and that users agree to lose.
	GivenUp []Agreement `json:"givenUp,omitempty"`
}

// Wish is what a person wants, and since when.
type Wish struct {
	At  time.Time `json:"requestedAt"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
	// ID tells a wish to begin from others, for who looks later what was answered.
	ID string `json:"id,omitempty"`
	// Undo is true of a stop that has all be taken back that was done.
	Undo bool `json:"undo,omitempty"`
}

// ParseAsked reads what FormatAsked has written. Whoever wrote what nobody can read has asked for something: until
// that is put right it is a stop.
func ParseAsked(text string) Asked {
	var a Asked
	if text == "" {
		return a
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return Asked{Stop: &Wish{Why: "what was asked cannot be read"}}
	}
	return a
}

// FormatAsked returns what was asked as it is kept; empty if that is nothing.
func FormatAsked(a Asked) string {
	if a.Stop == nil && a.Run == nil && len(a.GivenUp) == 0 {
		return ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // values of plain types
	}
	return string(text)
}

// TakeBack returns what is asked once a person wants all be taken back that a migration has done; an earlier wish for
// that stays, and an earlier stop becomes it. Where there is no way back it is an error that says what holds instead.
func (a Asked) TakeBack(j Journal, wish Wish) (Asked, error) {
	switch why := j.OneWay(); {
	case !j.Open():
		return a, fmt.Errorf("nothing is to be taken back: %s. Without --undo, weir migrate stop keeps a migration from beginning", why)
	case why != "":
		return a, fmt.Errorf("the migration cannot be taken back: %s. Nothing was asked: it keeps each address, and goes on to its end. "+
			"weir migrate status says where each address is, and weir migrate stop has it wait", why)
	}
	if wish.Undo = true; a.Stop == nil || !a.Stop.Undo {
		a.Stop = &wish
	}
	return a, nil
}

// String is for people: who, since when, and why.
func (w Wish) String() string {
	text := "by somebody"
	if w.By != "" {
		text = "by " + w.By
	}
	if !w.At.IsZero() {
		text += ", at " + w.At.UTC().Format(time.RFC3339)
	}
	if w.Why != "" {
		text += ": " + w.Why
	}
	return text
}
