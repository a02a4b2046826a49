// SPDX-License-Identifier: Apache-2.0

package provision

import "time"

// Phase is where a Provision is. The zero value is one that nothing is known of.
type Phase string

// Phases, as a status has them.
const (
	Running   Phase = "Running"
	Waiting   Phase = "Waiting"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Cancelled Phase = "Cancelled"
)

// State is what is on record. It is written before what it says is done.
type State struct {
	Phase Phase
	// Job is a digest of what is wanted, as the attempts since the last new beginning saw it: that of the
	// target, a slash, and that of the rest.
	Job string
	// Begun counts the attempts for that job, Number all that ever began.
	Begun  int
	Number int64
	// StartedAt is when the attempt under way began; Job was what it is for.
	StartedAt time.Time
	// EndedAt is when the last attempt ended.
	EndedAt time.Time

	// Since is when the present wait began, or when somebody asked for its end.
	Since time.Time
	// NotBefore is what a server named. It lasts until the next attempt, a reset, or another target.
	NotBefore time.Time
	// Asked is whether somebody asked for the next attempt: our own waiting does not count, nor
	// does the bound on retries.
	Asked bool
	// Waited are all waits for this job together.
	Waited time.Duration

	// Cancelled is whether the attempts to come are cancelled.
	Cancelled bool
	// Anew is whether the next attempt repeats the steps that are done.
	Anew bool
	// Handled are the requests that were answered.
	Handled Requests
}

// Requests are what people ask for, as annotations have it. One that differs from what was handled
// is new.
type Requests struct{ Cancel, RetryNow, Reset string }

// Input is what a decision is made from besides the state.
type Input struct {
	Job      string
	Policy   Policy
	Requests Requests
	// AtWork is whether this process is at work on the attempt under way.
	AtWork bool
	// Busy is whether it is at work on so many others that no further attempt fits.
	Busy bool
	// Knocks are those that this process knows of.
	Knocks Knocks
}

// Result is how an attempt ended.
type Result string

// Results. Invalid is what no other attempt can mend.
const (
	DidSucceed Result = "Succeeded"
	DidFail    Result = "Failed"
	IsInvalid  Result = "Invalid"
)

// Outcome is the end of an attempt.
type Outcome struct {
	Result Result
	// NotBefore is the time that a server named in its refusal; zero if none did.
	NotBefore time.Time
}

// Do is what is done now.
type Do string

// What is done.
const (
	// Rest: nothing, until something changes.
	Rest Do = "rest"
	// Await: nothing, until Decision.At.
	Await Do = "await"
	// Begin: an attempt, which has to end by Decision.At.
	Begin Do = "begin"
	// Resume: the attempt under way, which another process left; it has to end by Decision.At.
	Resume Do = "resume"
)

// Decision is what is done now, once the state that came with it is on record.
type Decision struct {
	Do Do
	At time.Time
	// Anew is whether the attempt repeats the steps that are done.
	Anew bool
	// Told is what people are to hear.
	Told []Word
	// Lapsed is why the attempt under way has come to its end, if nobody was at work on it.
	Lapsed string
}

// Word is what people hear by an event.
type Word struct {
	Warning      bool
	Reason, Text string
}

// Reasons of words.
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
