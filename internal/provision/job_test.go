// SPDX-License-Identifier: Apache-2.0

package provision

import "testing"

// The action follows from the observed Job only.
func TestNextOfJob(t *testing.T) {
	const attempt = 7
	for _, tt := range []struct {
		name      string
		is        *Job
		anew, old JobDo // step not started with its input, and started
	}{
		{"there is none", nil, MakeJob, MakeJob},
		{"it runs", &Job{Attempt: 7}, RemoveJob, AwaitJob},
		{"one of an earlier attempt runs", &Job{Attempt: 6}, RemoveJob, TakeJob},
		{"it is being deleted", &Job{Attempt: 7, Leaving: true}, AwaitJob, AwaitJob},
		{"a done one is being deleted", &Job{Attempt: 6, Leaving: true, End: DidSucceed}, AwaitJob, AwaitJob},
		{"it is done", &Job{Attempt: 7, End: DidSucceed}, RemoveJob, SettleJob},
		{"one of an earlier attempt was done unseen", &Job{Attempt: 6, End: DidSucceed}, RemoveJob, SettleJob},
		{"it has failed", &Job{Attempt: 7, End: DidFail}, RemoveJob, SettleJob},
		{"it has failed for good", &Job{Attempt: 7, End: IsInvalid}, RemoveJob, SettleJob},
		{"one of an earlier attempt has failed", &Job{Attempt: 6, End: DidFail}, RemoveJob, RemoveJob},
		{"one of an earlier attempt has failed for good", &Job{Attempt: 6, End: IsInvalid}, RemoveJob, RemoveJob},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := NextOfJob(tt.is, false, attempt); got != tt.anew {
				t.Errorf("before it has begun: %s, want %s", got, tt.anew)
			}
			if got := NextOfJob(tt.is, true, attempt); got != tt.old {
				t.Errorf("once it has begun: %s, want %s", got, tt.old)
			}
		})
	}
}
