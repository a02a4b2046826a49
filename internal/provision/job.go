// SPDX-License-Identifier: Apache-2.0

package provision

// Job is the observed Job of a step. Its name is fixed, so there is at most one.
type Job struct {
	Leaving bool
	// Attempt is the last attempt that created or adopted it.
	Attempt int64
	// End is the result; empty while it runs.
	End Result
}

// JobDo is the action for a step's Job.
type JobDo string

// Actions.
const (
	// MakeJob creates the Job.
	MakeJob JobDo = "make"
	// TakeJob adopts the Job of another attempt.
	TakeJob JobDo = "take"
	// AwaitJob waits for its end or deletion.
	AwaitJob JobDo = "await"
	// RemoveJob deletes the Job before another is created.
	RemoveJob JobDo = "remove"
	// SettleJob evaluates the result.
	SettleJob JobDo = "settle"
)

// NextOfJob returns the action for a step's Job; nil means none exists. begun is set if the step
// was started with its current input, which the Job then has.
func NextOfJob(is *Job, begun bool, attempt int64) JobDo {
	switch {
	case is == nil:
		return MakeJob
	case is.Leaving:
		return AwaitJob
	case !begun:
		return RemoveJob
	case is.End == DidSucceed: // even if it ended unobserved
		return SettleJob
	case is.End != "" && is.Attempt == attempt: // in this process or an earlier one
		return SettleJob
	case is.End != "":
		return RemoveJob
	case is.Attempt != attempt:
		return TakeJob
	}
	return AwaitJob
}
