// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/provision"
)

func orderOf(p *v1alpha1.Provision) (provision.Order, error) {
	return provision.OrderOf(view.StepsOf(p))
}

// inputOf returns a digest of a step's input, without dependencies: they affect when the step runs,
// not what it does.
func (a *run) inputOf(step *v1alpha1.ProvisionStep, more ...any) string {
	is := *step
	is.DependsOn = nil
	return provision.Digest(append([]any{is, a.target.name}, more...)...)
}

// eachStep returns the first step that failed. Independent steps still run, so that the next
// attempt has less to do.
func (a *run) eachStep(ctx context.Context) (string, error) {
	order, err := orderOf(a.p)
	if err != nil {
		return "", invalid("%w", err)
	}
	f := failures{steps: a.p.Spec.Steps, done: make([]bool, len(a.p.Spec.Steps))}
	for _, i := range order.Steps {
		step := &a.p.Spec.Steps[i]
		if on := order.Waits(i, f.done); on >= 0 {
			a.says("step %s is not begun: step %s, which it depends on, is not done", step.Name, f.steps[on].Name)
			f.left = append(f.left, step.Name)
			continue
		}
		a.says("step %s", step.Name)
		if err := a.stepped(ctx, step.Name, func(ctx context.Context) error { return a.step(ctx, step) }); err != nil {
			if f.add(step.Name, err); a.endsAll(ctx, err) {
				return f.first, f.err()
			}
			a.says("step %s has failed: %v", step.Name, err)
			continue
		}
		f.done[i] = true
		a.says("step %s is done", step.Name)
		if i != order.Steps[len(order.Steps)-1] {
			a.keep(ctx, a.log)
		}
	}
	if len(f.errs) > 0 {
		return f.first, f.err()
	}
	if step, err := a.prune(ctx); err != nil {
		return step, err
	}
	return "", a.room.record(ctx, a.p, func(s *v1alpha1.ProvisionStatus) {
		s.Steps = only(s.Steps, a.p.Spec.Steps)
		a.trim(s)
	})
}

// endsAll reports whether err ends the attempt, including a Retry-After.
func (a *run) endsAll(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, errGone) || !a.notBefore(err, time.Now()).IsZero()
}

type failures struct {
	steps []v1alpha1.ProvisionStep
	done  []bool
	first string
	errs  []error
	left  []string
}

func (f *failures) add(step string, err error) {
	if f.first == "" {
		f.first = step
	} else {
		err = fmt.Errorf("step %s: %w", step, err)
	}
	f.errs = append(f.errs, err)
}

func (f *failures) err() error {
	if len(f.errs) == 1 && len(f.left) == 0 {
		return f.errs[0]
	}
	return stepsError{f}
}

type stepsError struct{ *failures }

func (e stepsError) Error() string {
	var all []string
	for _, err := range e.errs {
		all = append(all, err.Error())
	}
	if len(e.left) > 0 {
		all = append(all, "not begun for it: "+strings.Join(e.left, ", "))
	}
	return strings.Join(all, "; ")
}

// Unwrap returns the last error first: only that one can carry a Retry-After.
func (e stepsError) Unwrap() []error {
	all := slices.Clone(e.errs)
	slices.Reverse(all)
	return all
}

func (a *run) step(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	switch {
	case step.Manifests != nil:
		return a.manifests(ctx, step)
	case step.Helm != nil:
		return a.helm(ctx, step)
	case step.Wait != nil:
		return a.wait(ctx, step)
	case step.Job != nil:
		return a.job(ctx, step)
	case step.Migration != nil:
		return a.migration(ctx, step)
	}
	return invalid("it is of a kind that this program does not know")
}

func only(all []v1alpha1.StepStatus, wanted []v1alpha1.ProvisionStep) []v1alpha1.StepStatus {
	var kept []v1alpha1.StepStatus
	for _, step := range wanted {
		for _, s := range all {
			if s.Name == step.Name {
				kept = append(kept, s)
			}
		}
	}
	return kept
}
