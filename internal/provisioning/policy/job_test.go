// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// The action follows from the observed Job only.
func TestNextOfJob(t *testing.T) {
	const attempt = 7
	for _, tt := range []struct {
		name      string
		want      *Job
		anew, old JobAction // step not started with its input, and started
	}{
		{"there is none", nil, CreateJob, CreateJob},
		{"it runs", &Job{Attempt: 7}, DeleteJob, WaitForJob},
		{"one of an earlier attempt runs", &Job{Attempt: 6}, DeleteJob, AdoptJob},
		{"it is being deleted", &Job{Attempt: 7, Deleting: true}, WaitForJob, WaitForJob},
		{"a done one is being deleted", &Job{Attempt: 6, Deleting: true, End: ResultSucceeded}, WaitForJob, WaitForJob},
		{"it is done", &Job{Attempt: 7, End: ResultSucceeded}, DeleteJob, FinishJob},
		{"one of an earlier attempt was done unseen", &Job{Attempt: 6, End: ResultSucceeded}, DeleteJob, FinishJob},
		{"it has failed", &Job{Attempt: 7, End: ResultFailed}, DeleteJob, FinishJob},
		{"it has failed for good", &Job{Attempt: 7, End: ResultInvalid}, DeleteJob, FinishJob},
		{"one of an earlier attempt has failed", &Job{Attempt: 6, End: ResultFailed}, DeleteJob, DeleteJob},
		{"one of an earlier attempt has failed for good", &Job{Attempt: 6, End: ResultInvalid}, DeleteJob, DeleteJob},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := NextJobAction(tt.want, false, attempt); got != tt.anew {
				t.Errorf("before it has begun: %s, want %s", got, tt.anew)
			}
			if got := NextJobAction(tt.want, true, attempt); got != tt.old {
				t.Errorf("once it has begun: %s, want %s", got, tt.old)
			}
		})
	}
}
