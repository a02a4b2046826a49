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
func NextJobAction(job *Job, begun bool, attempt int64) JobAction {
	switch {
	case job == nil:
		return CreateJob
	case job.Deleting:
		return WaitForJob
	case !begun:
		return DeleteJob
	case job.End == ResultSucceeded: // even if it ended unobserved
		return FinishJob
	case job.End != "" && job.Attempt == attempt: // in this process or an earlier one
		return FinishJob
	case job.End != "":
		return DeleteJob
	case job.Attempt != attempt:
		return AdoptJob
	}
	return WaitForJob
}
