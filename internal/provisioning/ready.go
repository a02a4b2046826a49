// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/ratelimit"
)

var pollInterval = ratelimit.Exponential{Initial: time.Second, Max: 15 * time.Second}

const maxStatusMessage = 1 << 10

// checkReadiness reports whether an object is ready, and why not. An error means it never will be. With
// waited, claims must be bound and load balancers must have an address; otherwise a later step may
// provide them. With secret, status messages, which may quote a Secret, are omitted.
func checkReadiness(u *unstructured.Unstructured, secret, waited bool) (bool, string, error) {
	result, err := status.Compute(u)
	switch {
	case err != nil && secret:
		return false, "", errors.New("its status cannot be read")
	case err != nil:
		return false, "", err
	case secret:
		result.Message = "not ready"
	}
	result.Message = humanize.FormatMessage(result.Message, maxStatusMessage) // kept while the object is polled
	lacks, failed := checkKind(u, waited)
	switch {
	case failed != "":
		return false, "", errors.New(failed)
	case result.Status == status.FailedStatus:
		return false, "", errors.New(result.Message)
	case u.GroupVersionKind().GroupKind() == claimKind && result.Status == status.InProgressStatus:
		return lacks == "", lacks, nil
	case result.Status == status.CurrentStatus && lacks == "":
		return true, "", nil
	case result.Status == status.CurrentStatus:
		return false, lacks, nil
	}
	return false, result.Message, nil
}

func (r *run) runWait(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	input, status := r.inputDigest(step), r.stepStatus(step.Name)
	if status.Input == input && status.DoneAt != nil {
		r.logf("nothing has changed since it was done")
		return nil
	}
	reported := ""
	for n := 1; ; n++ {
		ready, reason, err := r.checkWait(ctx, step.Wait)
		if err != nil {
			return err
		}
		if ready {
			status.Input = input
			return r.completeStep(ctx, status)
		}
		if reason != reported {
			reported = reason
			r.logf("%s", reason)
		}
		if err := ratelimit.Sleep(ctx, pollInterval.DelayAfter(n)); err != nil {
			return fmt.Errorf("%s: %w", reason, err)
		}
	}
}

func (r *run) checkWait(ctx context.Context, w *v1alpha1.WaitStep) (bool, string, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(w.APIVersion)
	u.SetKind(w.Kind)
	object := w.Kind + " " + w.Name
	namespaced, err := r.target.IsObjectNamespaced(u)
	if meta.IsNoMatchError(err) {
		return false, "the target knows no " + w.Kind + " of " + w.APIVersion, nil
	}
	if err != nil {
		return false, "", fmt.Errorf("%s: %w", object, err)
	}
	key := client.ObjectKey{Name: w.Name}
	if namespaced {
		key.Namespace = cmp.Or(w.Namespace, r.target.namespace)
	}
	err = r.target.Get(ctx, key, u)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("%s: %w", object, err)
	}
	if err != nil {
		return false, object + " is not there", nil
	}
	if w.Condition == "" {
		ready, reason, err := checkReadiness(u, r.fromSecret[objectID{u.GroupVersionKind().GroupKind(), w.Name}], true)
		if err != nil {
			return false, "", fmt.Errorf("%s: %w", object, err)
		}
		return ready, object + " is not ready: " + reason, nil
	}
	if reason := checkGeneration(u); reason != "" {
		return false, object + ": " + reason, nil
	}
	if conditionOf(u, w.Condition) == "True" {
		return true, "", nil
	}
	return false, object + " has no condition " + w.Condition + " that is True", nil
}
