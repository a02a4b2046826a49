// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/internal/humanize"
)

// Progress is published by the leader next to the journal, for readers without Azure credentials.
type Progress struct {
	State ProgressState `json:"state"`
	// AnsweredRequest is the last start request that was answered, with the result in State.
	AnsweredRequest *UserRequest `json:"answeredRequest,omitempty"`
	// Phase is the next phase; StepsDone of Steps are complete.
	Phase       Phase    `json:"phase,omitempty"`
	StepsDone   int      `json:"stepsDone,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	WaitReasons []string `json:"waitReasons,omitempty"`
	Reasons     []string `json:"reasons,omitempty"`
}

// ProgressState is the state of a migration.
type ProgressState string

// The states.
const (
	ProgressIdle      ProgressState = "Listens"   // starts on request
	ProgressNoSKU     ProgressState = "NoSKU"     // azure.json doesn't set loadBalancerSku: requests are ignored
	ProgressNotNeeded ProgressState = "NotNeeded" // nothing is Basic
	ProgressRejected  ProgressState = "Refused"   // the preflight failed
	ProgressFailed    ProgressState = "GivenUp"   // Azure rejects it
	ProgressRunning   ProgressState = "UnderWay"
	ProgressUndone    ProgressState = "TakenBack"
	ProgressDone      ProgressState = "Ended"
)

const (
	maxReasons      = 16
	maxReasonLength = 512
)

// NewProgress limits the reasons.
func NewProgress(word ProgressState, reasons ...string) Progress {
	t := Progress{State: word}
	t.Reasons = limitReasons(reasons)
	return t
}

// NewStepProgress is for a running migration.
func NewStepProgress(s Steps, done, of int) Progress {
	t := Progress{State: ProgressRunning, Phase: s.Phase, StepsDone: done, Steps: of}
	t.WaitReasons = limitReasons(append(append([]string(nil), s.StopReasons...), s.WaitReasons...))
	return t
}

func limitReasons(reasons []string) []string {
	var names []string
	for _, text := range reasons[:min(len(reasons), maxReasons)] {
		names = append(names, humanize.FormatMessage(text, maxReasonLength))
	}
	if more := len(reasons) - maxReasons; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

// Merge keeps an answered request, and its reasons if next comes from a process that has not read
// Azure.
func (p Progress) Merge(next Progress) Progress {
	next.AnsweredRequest = p.AnsweredRequest
	if next.State == ProgressIdle && p.AnsweredRequest != nil && (p.State == ProgressRejected || p.State == ProgressFailed || p.State == ProgressNotNeeded) {
		return p
	}
	return next
}

// ParseProgress returns false for empty or invalid text.
func ParseProgress(text string) (Progress, bool) {
	var t Progress
	if text == "" || json.Unmarshal([]byte(text), &t) != nil || t.State == "" {
		return Progress{}, false
	}
	return t, true
}

// FormatProgress returns the stored form.
func FormatProgress(t Progress) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // plain types
	}
	return string(text)
}
