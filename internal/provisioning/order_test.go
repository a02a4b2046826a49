// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
)

// "a b:a c:" are manifests from ConfigMaps of these names, b after a, c after none.
func (s *stage) setSteps(steps string) {
	s.t.Helper()
	var p v1alpha1.Provision
	if err := s.here.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "edge"}, &p); err != nil {
		s.t.Fatal(err)
	}
	p.Spec.Steps = nil
	for word := range strings.FieldsSeq(steps) {
		name, on, want := strings.Cut(word, ":")
		step := v1alpha1.ProvisionStep{Name: name, Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: name}}}}
		if want {
			step.DependsOn = append([]string{}, strings.FieldsFunc(on, func(r rune) bool { return r == ',' })...)
		}
		p.Spec.Steps = append(p.Spec.Steps, step)
	}
	if err := s.here.Update(s.t.Context(), &p); err != nil {
		s.t.Fatal(err)
	}
}

func doneSteps(p *v1alpha1.Provision) string {
	var steps []string
	for _, step := range p.Status.Steps {
		if step.DoneAt != nil {
			steps = append(steps, step.Name)
		}
	}
	slices.Sort(steps)
	return strings.Join(steps, " ")
}

// Steps independent of a failed one run; dependent ones run in the attempt that fixes it.
func TestDependentsOfAFailedStep(t *testing.T) {
	s := newStage(t)
	s.setSteps("crds config:crds app:crds after:app,config last")
	for _, name := range []string{"crds", "app", "after", "last"} {
		s.setSources(name, name)
	}
	p, err := s.runSteps()
	if got := doneSteps(p); got != "app crds" {
		t.Errorf("done are %s", got)
	}
	if err == nil || !strings.Contains(err.Error(), `configmaps "config" not found; not begun for it: after, last`) {
		t.Errorf("it fails for %v", err)
	}
	for _, want := range []string{"step after is not begun: step config, which it depends on, is not done", "step last is not begun"} {
		if !strings.Contains(s.log.Text(), want) {
			t.Errorf("the log says nothing of %q:\n%s", want, s.log.Text())
		}
	}
	s.setSources("config", "config")
	p, err = s.runSteps()
	if got := doneSteps(p); err != nil || got != "after app config crds last" || strings.Contains(s.log.Text(), "applied ConfigMap default/app\n") {
		t.Errorf("then done are %s, %v\n%s", got, err, s.log.Text())
	}
}

// A changed input repeats a step, but not its dependents. A changed order repeats nothing.
func TestRepeatedSteps(t *testing.T) {
	s := newStage(t)
	s.setSteps("a b:a c:b")
	for _, name := range []string{"a", "b", "c"} {
		s.setSources(name, name)
	}
	if _, err := s.runSteps(); err != nil {
		t.Fatal(err)
	}
	s.setSources("a", "a", "more")
	s.setSteps("a b:a c:")
	if _, err := s.runSteps(); err != nil || strings.Count(s.log.Text(), "applied") != 2 || !strings.Contains(s.log.Text(), "applied ConfigMap default/more") {
		t.Errorf("%v\n%s", err, s.log.Text())
	}
}

// Every failed step is reported, and a permanent error ends the retries.
func TestSeveralStepsFail(t *testing.T) {
	s := newStage(t)
	s.setSteps("a: b: c:")
	s.setSources("c", "c")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, Data: map[string]string{"objects": "a: ["}}
	if err := s.here.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	p, err := s.runSteps()
	if _, ok := errors.AsType[invalidError](err); !ok || !strings.Contains(err.Error(), `"a" not found; step b: objects of ConfigMap b`) || doneSteps(p) != "c" {
		t.Errorf("got %v, done are %s", err, doneSteps(p))
	}
}

// After a Retry-After the attempt sends nothing more to the target, even if another step failed
// before.
func TestNoStepAfterATargetAsksForPatience(t *testing.T) {
	s := newStage(t)
	s.setSteps("missing: a: c:")
	s.setSources("a", "a")
	s.setSources("c", "c")
	s.handler = &faultyTarget{fault: respondStatus(http.StatusTooManyRequests, "Retry-After", "70")}
	p, err := s.runSteps()
	if strings.Contains(s.log.Text(), "step c") || doneSteps(p) != "" {
		t.Errorf("done are %q\n%s", doneSteps(p), s.log.Text())
	}
	if at := s.run.retryAfter(err, time.Now()); time.Until(at) < time.Minute {
		t.Errorf("the next attempt may begin at %s", at)
	}
	if err == nil || fmt.Sprint(err) == "" {
		t.Error("it fails for nothing")
	}
}

// A dependency cycle starts nothing, and the condition names its steps.
func TestStepsThatWaitForEachOther(t *testing.T) {
	_, p := newProvision("shop", "edge")
	p.Spec.Steps = []v1alpha1.ProvisionStep{{Name: "a", DependsOn: []string{"b"}}, {Name: "b"}}
	r := &Reconciler{Config: Config{Cached: fakeAPI(t, interceptor.Funcs{})}}
	d, err := r.nextDecision(t.Context(), p, attemptState{}, time.Now())
	accepted := p.Status.Conditions[0]
	if err != nil || d.startsAttempt() || accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, "a, which waits for b, which waits for a") {
		t.Errorf("got %+v, %+v, %v", d.decision, accepted, err)
	}
	p.Spec.Steps[1].DependsOn = []string{}
	if d, err = r.nextDecision(t.Context(), p, attemptState{}, time.Now()); err != nil || !d.startsAttempt() || p.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("once they do not: %+v, %v", d.decision, err)
	}
}
