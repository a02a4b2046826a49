// SPDX-License-Identifier: Apache-2.0

package policy

// Job is the observed Job of a step. Its name is fixed, so there is at most one.
type Job struct {
	Deleting bool
	// Attempt is the last attempt that created or adopted it.
	Attempt int64
	// End is the result; empty while it runs.
	End Result
}

// JobAction is the action for a step's Job.
type JobAction string

// Actions.
const (
	// CreateJob creates the Job.
	CreateJob JobAction = "make"
	// AdoptJob adopts the Job of another attempt.
	AdoptJob JobAction = "take"
	// WaitForJob waits for its end or deletion.
	WaitForJob JobAction = "await"
	// DeleteJob deletes the Job before another is created.
	DeleteJob JobAction = "remove"
	// FinishJob evaluates the result.
	FinishJob JobAction = "settle"
)

// NextJobAction returns the action for a step's Job; nil means none exists. begun is set if the step
// was started with its current input, which the Job then has.
func NextJobAction(is *Job, begun bool, attempt int64) JobAction {
	switch {
	case is == nil:
		return CreateJob
	case is.Deleting:
		return WaitForJob
	case !begun:
		return DeleteJob
	case is.End == ResultSucceeded: // even if it ended unobserved
		return FinishJob
	case is.End != "" && is.Attempt == attempt: // in this process or an earlier one
		return FinishJob
	case is.End != "":
		return DeleteJob
	case is.Attempt != attempt:
		return AdoptJob
	}
	return WaitForJob
}
