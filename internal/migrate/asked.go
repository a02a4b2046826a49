// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"
	"fmt"
	"time"
)

// Asked holds what users requested. Users write it; it is stored next to the journal.
type Asked struct {
	// Stop pauses the migration before its next step, or undoes it.
	Stop *Wish `json:"stop,omitempty"`
	// Run starts a migration that azure.json does not start. It is removed once handled.
	Run *Wish `json:"run,omitempty"`
	// GivenUp are rejected addresses that users agreed to lose.
	GivenUp []Agreement `json:"givenUp,omitempty"`
}

// Wish is a request by a user.
type Wish struct {
	At  time.Time `json:"requestedAt"`
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
	// ID identifies a request to start, so that its sender can find the answer.
	ID string `json:"id,omitempty"`
	// Undo is true for a stop that also undoes the migration.
	Undo bool `json:"undo,omitempty"`
}

// ParseAsked parses the output of FormatAsked. Unreadable text counts as a stop until it is fixed.
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

// FormatAsked returns the stored form; empty if nothing is requested.
func FormatAsked(a Asked) string {
	if a.Stop == nil && a.Run == nil && len(a.GivenUp) == 0 {
		return ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // plain types
	}
	return string(text)
}

// TakeBack adds a request to undo the migration. It keeps an earlier undo request and replaces an
// earlier stop. It returns an error if the migration can't be undone.
func (a Asked) TakeBack(j Journal, request Wish) (Asked, error) {
	switch reason := j.OneWay(); {
	case !j.Open():
		return a, fmt.Errorf("nothing is to be taken back: %s. Without --undo, weir migrate stop keeps a migration from beginning", reason)
	case reason != "":
		return a, fmt.Errorf("the migration cannot be taken back: %s. Nothing was asked: it keeps each address, and goes on to its end. "+
			"weir migrate status says where each address is, and weir migrate stop has it wait", reason)
	}
	if request.Undo = true; a.Stop == nil || !a.Stop.Undo {
		a.Stop = &request
	}
	return a, nil
}

// String describes the request for humans.
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
