// SPDX-License-Identifier: Apache-2.0

package provision

// Job is what is seen of the Job of a step. A step has one name for it, so that there are never two.
type Job struct {
	// Leaving is whether it is being deleted.
	Leaving bool
	// Attempt is the last one that made it or took it over.
	Attempt int64
	// End is how it has ended; empty while it has not.
	End Result
}

// JobDo is what is done about the Job of a step.
type JobDo string

// What is done.
const (
	// MakeJob: it is made.
	MakeJob JobDo = "make"
	// TakeJob: another attempt made it, and this one waits for it.
	TakeJob JobDo = "take"
	// AwaitJob: nothing, until it has ended or gone.
	AwaitJob JobDo = "await"
	// RemoveJob: it is deleted, and another one made in its place.
	RemoveJob JobDo = "remove"
	// SettleJob: it has ended for this attempt.
	SettleJob JobDo = "settle"
)

// NextOfJob is what an attempt does about the Job of a step, nil for none. begun is whether the step
// has begun with the input that it has now: any Job was made with that then.
func NextOfJob(is *Job, begun bool, attempt int64) JobDo {
	switch {
	case is == nil:
		return MakeJob
	case is.Leaving:
		return AwaitJob
	case !begun:
		return RemoveJob
	case is.End == DidSucceed: // also one that has done so while nobody could see it
		return SettleJob
	case is.End != "" && is.Attempt == attempt: // by this attempt's process, or by one that is gone
		return SettleJob
	case is.End != "":
		return RemoveJob
	case is.Attempt != attempt:
		return TakeJob
	}
	return AwaitJob
}
