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

// State is the recorded state, written before the action it describes.
type State struct {
	Phase Phase
	// Job is the digest of the target, a slash, and that of the rest of the spec.
	Job string
	// Begun counts the attempts for this job, Number all attempts.
	Begun     int
	Number    int64
	StartedAt time.Time
	EndedAt   time.Time

	// Since is the start of the current wait, or the time of a retry request.
	Since time.Time
	// NotBefore is the server's Retry-After. It holds until the next attempt, a reset or another
	// target.
	NotBefore time.Time
	// Asked is set by a retry request: neither the wait nor the retry bound applies.
	Asked  bool
	Waited time.Duration

	Cancelled bool
	Anew      bool
	Handled   Requests
}

// Requests are annotations. A changed one is new.
type Requests struct{ Cancel, RetryNow, Reset string }

// Input is the input of a decision.
type Input struct {
	Job      string
	Policy   Policy
	Requests Requests
	// AtWork is set while this process runs the attempt.
	AtWork bool
	// Busy is set if there is no free slot.
	Busy   bool
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
	// Resume continues the attempt of another process, with deadline Decision.At.
	Resume Do = "resume"
)

// Decision is the next action. The state returned with it must be recorded first.
type Decision struct {
	Do   Do
	At   time.Time
	Anew bool
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
