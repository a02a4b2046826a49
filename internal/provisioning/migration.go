// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// runMigration runs a migration by the target's own Weir. The request is recorded first, so that a
// retry does not repeat it.
func (r *run) runMigration(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	input, status := r.inputDigest(step), r.stepStatus(step.Name)
	if status.Input == input && status.DoneAt != nil {
		r.logf("nothing has changed since it was done")
		return nil
	}
	if status.Input != input {
		status.Asked = ""
	}
	last := r.p.Status.LastAttempt
	asker := MigrationRequester{
		API: r.target, Namespace: step.Migration.Namespace, Reason: fmt.Sprintf("step %s of Provision %s/%s", step.Name, r.p.Namespace, r.p.Name),
		RequestID: fmt.Sprintf("%s/%s/%d", r.p.UID, step.Name, r.p.Status.AttemptNumber), RecordedID: status.Asked,
		Retry: last != nil && last.Result == string(policy.ResultInvalid),
		RecordID: func(ctx context.Context, requestID string) error {
			status.Input, status.DoneAt, status.Applied, status.Asked = input, nil, 0, requestID
			return r.recordStep(ctx, status)
		},
		Logf: r.logf,
	}
	err := asker.Run(ctx)
	if reason, ok := errors.AsType[MigrationRejectedError](err); ok {
		return newInvalidError("%w", reason)
	}
	if err != nil {
		return err
	}
	status.Input = input
	return r.completeStep(ctx, status)
}
