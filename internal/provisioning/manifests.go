// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/ratelimit"
)

const fieldManager = "weir-provision"

func (r *run) applyManifests(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	return r.applyStep(ctx, step.Name, step.Manifests.Prune, func(ctx context.Context) (*loadedStep, error) {
		l, err := r.loadObjects(ctx, func(ctx context.Context) ([]text, error) { return r.readTexts(ctx, step.Manifests) })
		if err == nil {
			l.input = r.inputDigest(step, objectBodies(l.objects))
		}
		return l, err
	})
}

// applyStep applies the objects of a step, except those applied by earlier attempts, so that attempts
// over a slow link make progress.
func (r *run) applyStep(ctx context.Context, step string, prune bool, read func(context.Context) (*loadedStep, error)) error {
	l, err := read(ctx)
	if err != nil {
		return err
	}
	defer func() { l.memory.Release() }()
	l.reload = read
	objects, status := l.objects, r.stepStatus(step)
	if err := r.recordObjects(step, objects); err != nil {
		return err
	}
	if status.Input == l.input && status.DoneAt != nil {
		r.logf("nothing has changed since it was done")
		return nil
	}
	if status.Input != l.input {
		status.Input, status.DoneAt, status.Applied = l.input, nil, 0
	}
	turn, end := l.withTurn(ctx)
	err = r.setNamespaces(turn, objects)
	if errors.Is(context.Cause(turn), errPreempt) {
		l.releaseMemory()
		err = r.setNamespaces(ctx, objects)
	}
	end()
	if err != nil {
		return err
	}
	status.Inventory = mergeIDs(status.Inventory, objectIDs(objects))
	if err := r.recordStep(ctx, status); err != nil { // before the first object exists
		return err
	}
	if err := r.applyObjects(ctx, l, &status); err != nil {
		return r.recordProgress(ctx, status, err)
	}
	if !prune { // pruning steps are trimmed once all steps are done
		status.Inventory = objectIDs(objects) // every namespace is resolved now
	}
	return r.completeStep(ctx, status)
}

// recordProgress records the progress of a failed step. ctx may already be done.
func (r *run) recordProgress(ctx context.Context, status v1alpha1.StepStatus, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := r.recordStep(ctx, status); err != nil {
		r.logf("how far the step has come is not recorded: %v", err)
		if errors.Is(err, errDeleted) {
			return err
		}
	}
	return failed
}

func (r *run) setNamespaces(ctx context.Context, objects []object) error {
	defer r.target.kinds.useContext(ctx)()
	r.target.kinds.setDesired(objects)
	missing := map[schema.GroupVersionKind]bool{}
	for i := range objects {
		o := &objects[i]
		if missing[o.gvk] {
			continue
		}
		namespaced, err := apiutil.IsGVKNamespaced(o.gvk, r.target.RESTMapper())
		switch {
		case meta.IsNoMatchError(err): // its CRD may be among the objects
			missing[o.gvk] = true
		case err != nil:
			return fmt.Errorf("%s: %w", o, r.maskError(*o, err))
		case !namespaced:
			o.namespace = ""
		case o.namespace == "":
			o.namespace = cmp.Or(o.defaultNamespace, r.target.namespace)
		}
	}
	return nil
}

// applyObjects applies the remaining objects and waits until they are ready, Namespaces and CRDs first.
func (r *run) applyObjects(ctx context.Context, l *loadedStep, status *v1alpha1.StepStatus) error {
	objects := l.objects
	first := slices.IndexFunc(objects, func(o object) bool { return !o.isPrerequisite() })
	if first < 0 {
		first = len(objects)
	}
	for int(status.Applied) < len(objects) {
		if int(status.Applied) == first && first > 0 {
			l.releaseMemory()
			if err := r.waitUntilReady(ctx, objects[:first], status); err != nil {
				return err
			}
			if err := r.setNamespaces(ctx, objects[first:]); err != nil {
				return err
			}
		}
		if err := l.ensureLoaded(ctx); err != nil {
			return err
		}
		o := objects[status.Applied]
		turn, end := l.withTurn(ctx)
		err := r.applyObject(turn, o)
		isRecalled := errors.Is(context.Cause(turn), errPreempt)
		end()
		if err != nil && isRecalled {
			r.logf("%s is sent again later: %v", o, errPreempt)
			l.releaseMemory()
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o, r.maskError(o, err))
		}
		r.logf("applied %s", o)
		status.Applied++
	}
	l.releaseMemory()
	return r.waitUntilReady(ctx, objects, status)
}

func (r *run) applyObject(ctx context.Context, o object) error {
	fields := decodeFields(o.body)
	metadata := decodeFields(fields["metadata"])
	namespace, err := json.Marshal(o.namespace)
	if err != nil {
		return err
	}
	if metadata["namespace"] = namespace; o.namespace == "" {
		delete(metadata, "namespace")
	}
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return r.target.Patch(ctx, o.newUnstructured(), client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(fieldManager), client.ForceOwnership)
}

type maskedError struct {
	reason metav1.StatusReason
	err    error
}

func (e maskedError) Error() string {
	return fmt.Sprintf("the API server rejects it (%s), and its message may quote a Secret", e.reason)
}

func (e maskedError) Unwrap() error { return e.err }

// maskError returns err without text that may quote a Secret.
func (r *run) maskError(o object, err error) error {
	if reason := apierrors.ReasonForError(err); o.secret && reason != metav1.StatusReasonUnknown {
		return maskedError{reason, err}
	}
	return err
}

func (r *run) waitUntilReady(ctx context.Context, objects []object, status *v1alpha1.StepStatus) error {
	waiting, reported := slices.Clone(objects), ""
	for n := 1; ; n++ {
		var reason []string
		var still []object
		for _, o := range waiting {
			current := o.newUnstructured()
			err := r.target.Get(ctx, client.ObjectKeyFromObject(current), current)
			if apierrors.IsNotFound(err) {
				status.Applied = 0 // it was deleted: apply all again
			}
			if err != nil {
				return errors.Join(notReadyError(reason), fmt.Errorf("%s: %w", o, r.maskError(o, err)))
			}
			ready, message, err := checkReadiness(current, o.secret, false)
			if err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
			if !ready {
				still, reason = append(still, o), append(reason, o.String()+": "+message)
			}
		}
		if waiting = still; len(waiting) == 0 {
			return nil
		}
		if current := humanize.FormatList(reason, 5); current != reported {
			reported = current
			r.logf("not ready yet: %s", current)
		}
		if err := ratelimit.Sleep(ctx, pollInterval.DelayAfter(n)); err != nil {
			return errors.Join(notReadyError(reason), err)
		}
	}
}

func notReadyError(reason []string) error {
	if len(reason) == 0 {
		return nil
	}
	return errors.New("not ready: " + humanize.FormatList(reason, 5))
}
