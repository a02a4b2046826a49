// SPDX-License-Identifier: Apache-2.0

package provisions

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
func (s *stage) has(steps string) {
	s.t.Helper()
	var p v1alpha1.Provision
	if err := s.here.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "edge"}, &p); err != nil {
		s.t.Fatal(err)
	}
	p.Spec.Steps = nil
	for word := range strings.FieldsSeq(steps) {
		name, on, says := strings.Cut(word, ":")
		step := v1alpha1.ProvisionStep{Name: name, Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: name}}}}
		if says {
			step.DependsOn = append([]string{}, strings.FieldsFunc(on, func(r rune) bool { return r == ',' })...)
		}
		p.Spec.Steps = append(p.Spec.Steps, step)
	}
	if err := s.here.Update(s.t.Context(), &p); err != nil {
		s.t.Fatal(err)
	}
}

func done(p *v1alpha1.Provision) string {
	var all []string
	for _, step := range p.Status.Steps {
		if step.DoneAt != nil {
			all = append(all, step.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Steps independent of a failed one run; dependent ones run in the attempt that fixes it.
func TestWhatDependsOnAFailedStep(t *testing.T) {
	s := newStage(t)
	s.has("crds config:crds app:crds after:app,config last")
	for _, name := range []string{"crds", "app", "after", "last"} {
		s.source(name, name)
	}
	p, err := s.attempt()
	if got := done(p); got != "app crds" {
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
	s.source("config", "config")
	p, err = s.attempt()
	if got := done(p); err != nil || got != "after app config crds last" || strings.Contains(s.log.Text(), "applied ConfigMap default/app\n") {
		t.Errorf("then done are %s, %v\n%s", got, err, s.log.Text())
	}
}

// A changed input repeats a step, but not its dependents. A changed order repeats nothing.
func TestWhatIsRepeated(t *testing.T) {
	s := newStage(t)
	s.has("a b:a c:b")
	for _, name := range []string{"a", "b", "c"} {
		s.source(name, name)
	}
	if _, err := s.attempt(); err != nil {
		t.Fatal(err)
	}
	s.source("a", "a", "more")
	s.has("a b:a c:")
	if _, err := s.attempt(); err != nil || strings.Count(s.log.Text(), "applied") != 2 || !strings.Contains(s.log.Text(), "applied ConfigMap default/more") {
		t.Errorf("%v\n%s", err, s.log.Text())
	}
}

// Every failed step is reported, and a permanent error ends the retries.
func TestSeveralStepsFail(t *testing.T) {
	s := newStage(t)
	s.has("a: b: c:")
	s.source("c", "c")
	is := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, Data: map[string]string{"objects": "a: ["}}
	if err := s.here.Create(t.Context(), is); err != nil {
		t.Fatal(err)
	}
	p, err := s.attempt()
	if _, is := errors.AsType[invalidError](err); !is || !strings.Contains(err.Error(), `"a" not found; step b: objects of ConfigMap b`) || done(p) != "c" {
		t.Errorf("got %v, done are %s", err, done(p))
	}
}

// After a Retry-After the attempt sends nothing more to the target, even if another step failed
// before.
func TestNoStepAfterATargetAsksForPatience(t *testing.T) {
	s := newStage(t)
	s.has("missing: a: c:")
	s.source("a", "a")
	s.source("c", "c")
	s.handler = &faulty{fault: refuses(http.StatusTooManyRequests, "Retry-After", "70")}
	p, err := s.attempt()
	if strings.Contains(s.log.Text(), "step c") || done(p) != "" {
		t.Errorf("done are %q\n%s", done(p), s.log.Text())
	}
	if at := s.run.notBefore(err, time.Now()); time.Until(at) < time.Minute {
		t.Errorf("the next attempt may begin at %s", at)
	}
	if err == nil || fmt.Sprint(err) == "" {
		t.Error("it fails for nothing")
	}
}

// A dependency cycle starts nothing, and the condition names its steps.
func TestStepsThatWaitForEachOther(t *testing.T) {
	_, p := named("shop", "edge")
	p.Spec.Steps = []v1alpha1.ProvisionStep{{Name: "a", DependsOn: []string{"b"}}, {Name: "b"}}
	r := &Room{Config: Config{Cached: fakeAPI(t, interceptor.Funcs{})}}
	d, err := r.decide(t.Context(), p, looked{}, time.Now())
	accepted := p.Status.Conditions[0]
	if err != nil || d.begins() || accepted.Status != metav1.ConditionFalse || !strings.Contains(accepted.Message, "a, which waits for b, which waits for a") {
		t.Errorf("got %+v, %+v, %v", d.decision, accepted, err)
	}
	p.Spec.Steps[1].DependsOn = []string{}
	if d, err = r.decide(t.Context(), p, looked{}, time.Now()); err != nil || !d.begins() || p.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("once they do not: %+v, %v", d.decision, err)
	}
}
