// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Phase is the phase of a Provision. The zero value means unknown.
type Phase string

// Phases, as in the status.
const (
	Running   Phase = "Running"
	Waiting   Phase = "Waiting"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Cancelled Phase = "Cancelled"
)

// State is the recorded state, written before the action it describes.
type State struct {
	Phase Phase
	// SpecDigest is the digest of the target, a slash, and that of the rest of the spec.
	SpecDigest string
	// Attempts counts the attempts for this job, Number all attempts.
	Attempts  int
	Number    int64
	StartedAt time.Time
	EndedAt   time.Time

	// Since is the start of the current wait, or the time of a retry request.
	Since time.Time
	// NotBefore is the server's Retry-After. It holds until the next attempt, a reset or another
	// target.
	NotBefore time.Time
	// RetryRequested is set by a retry request: neither the wait nor the retry bound applies.
	RetryRequested bool
	TotalWait      time.Duration

	Cancelled       bool
	Repeat          bool
	HandledRequests Requests
}

// Requests are annotations. A changed one is new.
type Requests struct{ Cancel, RetryNow, Reset string }

// Input is the input of a decision.
type Input struct {
	SpecDigest string
	Policy     Policy
	Requests   Requests
	// AtWork is set while this process runs the attempt.
	AtWork bool
	// Busy is set if there is no free slot.
	Busy   bool
	Probes ProbeState
}

// Result is the result of an attempt.
type Result string

// Results. ResultInvalid is permanent.
const (
	ResultSucceeded Result = "Succeeded"
	ResultFailed    Result = "Failed"
	ResultInvalid   Result = "Invalid"
)

// Outcome describes the end of an attempt.
type Outcome struct {
	Result Result
	// NotBefore is the server's Retry-After; zero if none.
	NotBefore time.Time
}

// Action is the next action.
type Action string

// Actions.
const (
	// NoAction waits for a change.
	NoAction Action = "none"
	// WaitUntil waits until Decision.At.
	WaitUntil Action = "wait"
	// StartAttempt starts an attempt with deadline Decision.At.
	StartAttempt Action = "start"
	// ResumeAttempt continues the attempt of another process, with deadline Decision.At.
	ResumeAttempt Action = "resume"
)

// Decision is the next action. The state returned with it must be recorded first.
type Decision struct {
	Action Action
	At     time.Time
	Repeat bool
	Events []Event
	// TimeoutReason is why an abandoned attempt ended.
	TimeoutReason string
}

// Event is an event.
type Event struct {
	Warning         bool
	Reason, Message string
}

// Event reasons.
const (
	ReasonSucceeded     = "Provisioned"
	ReasonRetrying      = "ProvisioningRetrying"
	ReasonFailed        = "ProvisioningFailed"
	ReasonCancelled     = "RetriesCancelled"
	ReasonRetryNow      = "RetryNow"
	ReasonReachable     = "TargetAnswers"
	ReasonReset         = "ProvisioningReset"
	ReasonNothingToSkip = "NothingToRetry"
)
