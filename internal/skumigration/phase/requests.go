// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"encoding/json"
	"fmt"
	"time"
)

// UserRequests holds what users requested, written by them and stored next to the journal.
type UserRequests struct {
	// Stop pauses the migration before its next step, or undoes it.
	Stop *UserRequest `json:"stop,omitempty"`
	// Run starts a migration that azure.json doesn't start. It is removed once handled.
	Run *UserRequest `json:"run,omitempty"`
	// Releases are addresses that users agreed to lose.
	Releases []AddressRelease `json:"releases,omitempty"`
}

// UserRequest is a request by a user.
type UserRequest struct {
	At     time.Time `json:"requestedAt"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// ID identifies a start request to its sender.
	ID string `json:"id,omitempty"`
	// Undo is true for a stop that also undoes the migration.
	Undo bool `json:"undo,omitempty"`
}

// ParseUserRequests treats unreadable text as a stop until it is fixed.
func ParseUserRequests(text string) UserRequests {
	var a UserRequests
	if text == "" {
		return a
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return UserRequests{Stop: &UserRequest{Reason: "the request cannot be read"}}
	}
	return a
}

// FormatUserRequests returns "" if nothing is requested.
func FormatUserRequests(a UserRequests) string {
	if a.Stop == nil && a.Run == nil && len(a.Releases) == 0 {
		return ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // plain types
	}
	return string(text)
}

// RequestUndo adds an undo request. It keeps an earlier one and replaces a stop. It fails if the
// migration can't be undone.
func (u UserRequests) RequestUndo(j Journal, request UserRequest) (UserRequests, error) {
	switch reason := j.NoUndoReason(); {
	case !j.IsOpen():
		return u, fmt.Errorf("nothing is to be taken back: %s. Without --undo, weir migrate stop keeps a migration from beginning", reason)
	case reason != "":
		return u, fmt.Errorf("the migration cannot be undone: %s. Nothing was requested: it keeps each address, and continues to its end. "+
			"weir migrate status shows where each address is, and weir migrate stop pauses it", reason)
	}
	if request.Undo = true; u.Stop == nil || !u.Stop.Undo {
		u.Stop = &request
	}
	return u, nil
}

// String implements fmt.Stringer.
func (u UserRequest) String() string {
	text := "by somebody"
	if u.By != "" {
		text = "by " + u.By
	}
	if !u.At.IsZero() {
		text += ", at " + u.At.UTC().Format(time.RFC3339)
	}
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	return text
}
