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
func (a *run) runMigration(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	input, status := a.inputDigest(step), a.stepStatus(step.Name)
	if status.Input == input && status.DoneAt != nil {
		a.logf("nothing has changed since it was done")
		return nil
	}
	if status.Input != input {
		status.Asked = ""
	}
	last := a.p.Status.LastAttempt
	asker := MigrationRequester{
		API: a.target, Namespace: step.Migration.Namespace, Reason: fmt.Sprintf("step %s of Provision %s/%s", step.Name, a.p.Namespace, a.p.Name),
		RequestID: fmt.Sprintf("%s/%s/%d", a.p.UID, step.Name, a.p.Status.AttemptNumber), RecordedID: status.Asked,
		Retry: last != nil && last.Result == string(policy.ResultInvalid),
		RecordID: func(ctx context.Context, requestID string) error {
			status.Input, status.DoneAt, status.Applied, status.Asked = input, nil, 0, requestID
			return a.recordStep(ctx, status)
		},
		Logf: a.logf,
	}
	err := asker.Run(ctx)
	if why, ok := errors.AsType[MigrationRejectedError](err); ok {
		return newInvalidError("%w", why)
	}
	if err != nil {
		return err
	}
	status.Input = input
	return a.completeStep(ctx, status)
}
