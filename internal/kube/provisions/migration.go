// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/migrations"
	"weir.dev/weir/internal/provision"
)

// migration runs a migration by the target's own Weir. The request is recorded first, so that a
// retry does not repeat it.
func (a *run) migration(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	input, is := a.inputOf(step), a.status(step.Name)
	if is.Input == input && is.DoneAt != nil {
		a.says("nothing has changed since it was done")
		return nil
	}
	if is.Input != input {
		is.Asked = ""
	}
	last := a.p.Status.LastAttempt
	asker := migrations.Asker{
		API: a.target, Namespace: step.Migration.Namespace, Why: fmt.Sprintf("step %s of Provision %s/%s", step.Name, a.p.Namespace, a.p.Name),
		Wish: fmt.Sprintf("%s/%s/%d", a.p.UID, step.Name, a.p.Status.AttemptNumber), Kept: is.Asked,
		Again: last != nil && last.Result == string(provision.IsInvalid),
		Keep: func(ctx context.Context, wish string) error {
			is.Input, is.DoneAt, is.Applied, is.Asked = input, nil, 0, wish
			return a.records(ctx, is)
		},
		Says: a.says,
	}
	err := asker.Run(ctx)
	if why, is := errors.AsType[migrations.RefusedError](err); is {
		return invalid("%w", why)
	}
	if err != nil {
		return err
	}
	is.Input = input
	return a.done(ctx, is)
}
