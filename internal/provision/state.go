// SPDX-License-Identifier: Apache-2.0

package provision

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

// State is the recorded state. It is written before the action it describes.
type State struct {
	Phase Phase
	// Job is the digest of the spec the attempts are for: that of the target, a slash, and that of
	// the rest.
	Job string
	// Begun counts the attempts for this job, Number all attempts.
	Begun  int
	Number int64
	// StartedAt is the start of the running attempt.
	StartedAt time.Time
	// EndedAt is the end of the last attempt.
	EndedAt time.Time

	// Since is the start of the current wait, or the time of a user's retry request.
	Since time.Time
	// NotBefore is the server's Retry-After. It holds until the next attempt, a reset or another
	// target.
	NotBefore time.Time
	// Asked is set if a user requested the next attempt: neither the wait nor the retry bound
	// applies.
	Asked bool
	// Waited is the sum of all waits for this job.
	Waited time.Duration

	// Cancelled is set if upcoming attempts are cancelled.
	Cancelled bool
	// Anew makes the next attempt repeat finished steps.
	Anew bool
	// Handled holds the requests already handled.
	Handled Requests
}

// Requests are the user's request annotations. One that differs from Handled is new.
type Requests struct{ Cancel, RetryNow, Reset string }

// Input is the input of a decision, apart from the state.
type Input struct {
	Job      string
	Policy   Policy
	Requests Requests
	// AtWork is set while this process runs the attempt.
	AtWork bool
	// Busy is set if this process has no free slot for an attempt.
	Busy bool
	// Knocks is the probe state in this process.
	Knocks Knocks
}

// Result is the result of an attempt.
type Result string

// Results. IsInvalid is permanent.
const (
	DidSucceed Result = "Succeeded"
	DidFail    Result = "Failed"
	IsInvalid  Result = "Invalid"
)

// Outcome describes the end of an attempt.
type Outcome struct {
	Result Result
	// NotBefore is the server's Retry-After; zero if none.
	NotBefore time.Time
}

// Do is the next action.
type Do string

// Actions.
const (
	// Rest waits for a change.
	Rest Do = "rest"
	// Await waits until Decision.At.
	Await Do = "await"
	// Begin starts an attempt with deadline Decision.At.
	Begin Do = "begin"
	// Resume resumes the attempt of another process with deadline Decision.At.
	Resume Do = "resume"
)

// Decision is the next action. The state returned with it must be recorded first.
type Decision struct {
	Do Do
	At time.Time
	// Anew makes the attempt repeat finished steps.
	Anew bool
	// Told lists the events to emit.
	Told []Word
	// Lapsed is why an abandoned attempt ended.
	Lapsed string
}

// Word is an event.
type Word struct {
	Warning      bool
	Reason, Text string
}

// Event reasons.
const (
	ReasonSucceeded     = "Provisioned"
	ReasonRetrying      = "ProvisioningRetrying"
	ReasonFailed        = "ProvisioningFailed"
	ReasonCancelled     = "RetriesCancelled"
	ReasonRetryNow      = "RetryNow"
	ReasonAnswers       = "TargetAnswers"
	ReasonReset         = "ProvisioningReset"
	ReasonNothingToSkip = "NothingToRetry"
)
