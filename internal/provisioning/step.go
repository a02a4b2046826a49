// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
)

func stepOrder(p *v1alpha1.Provision) (policy.Order, error) {
	return policy.OrderSteps(objects.StepsOf(p))
}

// inputDigest returns a digest of a step's input, without dependencies: they affect when the step runs,
// not what it does.
func (r *run) inputDigest(step *v1alpha1.ProvisionStep, more ...any) string {
	input := *step
	input.DependsOn = nil
	return policy.Digest(append([]any{input, r.target.name}, more...)...)
}

// runInOrder returns the first step that failed. Independent steps still run, so that the next
// attempt has less to do.
func (r *run) runInOrder(ctx context.Context) (string, error) {
	order, err := stepOrder(r.p)
	if err != nil {
		return "", newInvalidError("%w", err)
	}
	f := failures{steps: r.p.Spec.Steps, done: make([]bool, len(r.p.Spec.Steps))}
	for _, i := range order.Steps {
		step := &r.p.Spec.Steps[i]
		if on := order.UnfinishedDependency(i, f.done); on >= 0 {
			r.logf("step %s is not begun: step %s, which it depends on, is not done", step.Name, f.steps[on].Name)
			f.skipped = append(f.skipped, step.Name)
			continue
		}
		r.logf("step %s", step.Name)
		if err := r.traceStep(ctx, step.Name, func(ctx context.Context) error { return r.runStep(ctx, step) }); err != nil {
			if f.addFailure(step.Name, err); r.isFatal(ctx, err) {
				return f.first, f.toError()
			}
			r.logf("step %s has failed: %v", step.Name, err)
			continue
		}
		f.done[i] = true
		r.logf("step %s is done", step.Name)
		if i != order.Steps[len(order.Steps)-1] {
			r.saveLog(ctx, r.log)
		}
	}
	if len(f.errs) > 0 {
		return f.first, f.toError()
	}
	if step, err := r.pruneObjects(ctx); err != nil {
		return step, err
	}
	return "", r.reconciler.updateStatus(ctx, r.p, func(s *v1alpha1.ProvisionStatus) {
		s.Steps = filterSteps(s.Steps, r.p.Spec.Steps)
		r.trimInventory(s)
	})
}

// isFatal reports whether err ends the attempt, including a Retry-After.
func (r *run) isFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errDeleted) || !r.retryAfter(err, time.Now()).IsZero()
}

type failures struct {
	steps   []v1alpha1.ProvisionStep
	done    []bool
	first   string
	errs    []error
	skipped []string
}

func (f *failures) addFailure(step string, err error) {
	if f.first == "" {
		f.first = step
	} else {
		err = fmt.Errorf("step %s: %w", step, err)
	}
	f.errs = append(f.errs, err)
}

func (f *failures) toError() error {
	if len(f.errs) == 1 && len(f.skipped) == 0 {
		return f.errs[0]
	}
	return stepError{f}
}

type stepError struct{ *failures }

func (e stepError) Error() string {
	var names []string
	for _, err := range e.errs {
		names = append(names, err.Error())
	}
	if len(e.skipped) > 0 {
		names = append(names, "not begun for it: "+strings.Join(e.skipped, ", "))
	}
	return strings.Join(names, "; ")
}

// Unwrap returns the last error first: only that one can carry a Retry-After.
func (e stepError) Unwrap() []error {
	errs := slices.Clone(e.errs)
	slices.Reverse(errs)
	return errs
}

func (r *run) runStep(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	switch {
	case step.Manifests != nil:
		return r.applyManifests(ctx, step)
	case step.Helm != nil:
		return r.applyChart(ctx, step)
	case step.Wait != nil:
		return r.runWait(ctx, step)
	case step.Job != nil:
		return r.runJob(ctx, step)
	case step.Migration != nil:
		return r.runMigration(ctx, step)
	}
	return newInvalidError("it is of a kind that this program does not know")
}

func filterSteps(statuses []v1alpha1.StepStatus, wanted []v1alpha1.ProvisionStep) []v1alpha1.StepStatus {
	var kept []v1alpha1.StepStatus
	for _, step := range wanted {
		for _, s := range statuses {
			if s.Name == step.Name {
				kept = append(kept, s)
			}
		}
	}
	return kept
}
