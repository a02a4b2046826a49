// SPDX-License-Identifier: Apache-2.0

package provisions

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
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/words"
)

const fieldManager = "weir-provision"

func (a *run) manifests(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	return a.bring(ctx, step.Name, step.Manifests.Prune, func(ctx context.Context) (*load, error) {
		l, err := a.load(ctx, func(ctx context.Context) ([]text, error) { return a.texts(ctx, step.Manifests) })
		if err == nil {
			l.input = a.inputOf(step, contents(l.objects))
		}
		return l, err
	})
}

// bring applies the objects of a step, except those applied by earlier attempts, so that attempts
// over a slow link make progress.
func (a *run) bring(ctx context.Context, step string, prune bool, read func(context.Context) (*load, error)) error {
	l, err := read(ctx)
	if err != nil {
		return err
	}
	defer func() { l.hold.Release() }()
	l.read = read
	objects, is := l.objects, a.status(step)
	if err := a.remember(step, objects); err != nil {
		return err
	}
	if is.Input == l.input && is.DoneAt != nil {
		a.says("nothing has changed since it was done")
		return nil
	}
	if is.Input != l.input {
		is.Input, is.DoneAt, is.Applied = l.input, nil, 0
	}
	turn, end := l.turn(ctx)
	err = a.place(turn, objects)
	if errors.Is(context.Cause(turn), errRecalled) {
		l.drop()
		err = a.place(ctx, objects)
	}
	end()
	if err != nil {
		return err
	}
	is.Inventory = union(is.Inventory, inventory(objects))
	if err := a.records(ctx, is); err != nil { // before the first object exists
		return err
	}
	if err := a.apply(ctx, l, &is); err != nil {
		return a.brokenOff(ctx, is, err)
	}
	if !prune { // pruning steps are trimmed once all steps are done
		is.Inventory = inventory(objects) // every namespace is resolved now
	}
	return a.done(ctx, is)
}

// brokenOff records the progress of a failed step. ctx may already be done.
func (a *run) brokenOff(ctx context.Context, is v1alpha1.StepStatus, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordDeadline)
	defer cancel()
	if err := a.records(ctx, is); err != nil {
		a.says("how far the step has come is not recorded: %v", err)
		if errors.Is(err, errGone) {
			return err
		}
	}
	return failed
}

func (a *run) place(ctx context.Context, objects []object) error {
	defer a.target.kinds.within(ctx)()
	a.target.kinds.want(objects)
	missing := map[schema.GroupVersionKind]bool{}
	for i := range objects {
		o := &objects[i]
		if missing[o.gvk] {
			continue
		}
		namespaced, err := apiutil.IsGVKNamespaced(o.gvk, a.target.RESTMapper())
		switch {
		case meta.IsNoMatchError(err): // its CRD may be among the objects
			missing[o.gvk] = true
		case err != nil:
			return fmt.Errorf("%s: %w", o, a.about(*o, err))
		case !namespaced:
			o.namespace = ""
		case o.namespace == "":
			o.namespace = cmp.Or(o.home, a.target.namespace)
		}
	}
	return nil
}

// apply applies the remaining objects and waits until they are ready, Namespaces and CRDs first.
func (a *run) apply(ctx context.Context, l *load, is *v1alpha1.StepStatus) error {
	objects := l.objects
	first := slices.IndexFunc(objects, func(o object) bool { return !o.first() })
	if first < 0 {
		first = len(objects)
	}
	for int(is.Applied) < len(objects) {
		if int(is.Applied) == first && first > 0 {
			l.drop()
			if err := a.becomeReady(ctx, objects[:first], is); err != nil {
				return err
			}
			if err := a.place(ctx, objects[first:]); err != nil {
				return err
			}
		}
		if err := l.ensure(ctx); err != nil {
			return err
		}
		o := objects[is.Applied]
		turn, end := l.turn(ctx)
		err := a.applyOne(turn, o)
		isRecalled := errors.Is(context.Cause(turn), errRecalled)
		end()
		if err != nil && isRecalled {
			a.says("%s is sent again later: %v", o, errRecalled)
			l.drop()
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o, a.about(o, err))
		}
		a.says("applied %s", o)
		is.Applied++
	}
	l.drop()
	return a.becomeReady(ctx, objects, is)
}

func (a *run) applyOne(ctx context.Context, o object) error {
	fields := fieldsOf(o.body)
	metadata := fieldsOf(fields["metadata"])
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
	return a.target.Patch(ctx, o.empty(), client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(fieldManager), client.ForceOwnership)
}

type refusedError struct {
	reason metav1.StatusReason
	err    error
}

func (e refusedError) Error() string {
	return fmt.Sprintf("the API server refuses it (%s), and its words may quote a Secret", e.reason)
}

func (e refusedError) Unwrap() error { return e.err }

// about returns err without text that may quote a Secret.
func (a *run) about(o object, err error) error {
	if reason := apierrors.ReasonForError(err); o.secret && reason != metav1.StatusReasonUnknown {
		return refusedError{reason, err}
	}
	return err
}

func (a *run) becomeReady(ctx context.Context, objects []object, is *v1alpha1.StepStatus) error {
	waiting, reported := slices.Clone(objects), ""
	for n := 1; ; n++ {
		var why []string
		var still []object
		for _, o := range waiting {
			now := o.empty()
			err := a.target.Get(ctx, client.ObjectKeyFromObject(now), now)
			if apierrors.IsNotFound(err) {
				is.Applied = 0 // it was deleted: apply all again
			}
			if err != nil {
				return errors.Join(notReady(why), fmt.Errorf("%s: %w", o, a.about(o, err)))
			}
			ready, message, err := readiness(now, o.secret, false)
			if err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
			if !ready {
				still, why = append(still, o), append(why, o.String()+": "+message)
			}
		}
		if waiting = still; len(waiting) == 0 {
			return nil
		}
		if now := words.List(why, 5); now != reported {
			reported = now
			a.says("not ready yet: %s", now)
		}
		if err := sleep.For(ctx, looks.After(n)); err != nil {
			return errors.Join(notReady(why), err)
		}
	}
}

func notReady(why []string) error {
	if len(why) == 0 {
		return nil
	}
	return errors.New("not ready: " + words.List(why, 5))
}
