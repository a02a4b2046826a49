// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/budget"
	"weir.dev/weir/internal/provision"
)

// A silent target uses up the attempt's time before the step's sources are read.
func TestATargetThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
		step := v1alpha1.ProvisionStep{Name: "objects", Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: "is-not-there"}}}}
		w := newWhole(t, silent, remote(0, step, v1alpha1.RetryPolicy{AttemptTimeout: "22m"}, true)...)
		key, _ := named("shop", "edge-0")
		w.runs(func() {
			w.look(key)
			time.Sleep(22*time.Minute - time.Second)
			if is := w.is(key); is.Status.State != v1alpha1.ProvisionRunning {
				t.Errorf("within its time it is %s", is.Status.State)
			}
			time.Sleep(5 * time.Second)
			if last := w.is(key).Status.LastAttempt; last == nil || !strings.HasPrefix(last.Message, "the attempt's time was over") {
				t.Errorf("after its time the attempt is %+v", last)
			}
		})
	})
}

// A large step releases its memory while it waits and after a minute, and is read again. It fails
// if its sources changed.
func TestALargeStepIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, input, reads := budget.New(100, 100), "a", 0
		read := func(ctx context.Context) (*load, error) {
			hold, err := memory.Take(ctx, "shop", 100)
			if err != nil {
				return nil, err
			}
			reads++
			return &load{objects: []object{{body: []byte("{}")}}, input: input, hold: hold, since: time.Now(), large: true}, nil
		}
		l, err := read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.read = read
		is := func(what string, want int) {
			t.Helper()
			if err := l.ensure(t.Context()); err != nil || reads != want || l.objects[0].body == nil {
				t.Errorf("%s: read %d times, want %d, %v", what, reads, want, err)
			}
		}
		is("at once", 1)
		time.Sleep(holdTime - time.Second)
		is("within a minute", 1)
		time.Sleep(2 * time.Second)
		is("after a minute", 2)
		l.drop()
		other, err := memory.Take(t.Context(), "other", 100)
		if err != nil {
			t.Fatal("what waits holds memory")
		}
		other.Release()
		is("after it has waited", 3)
		l.drop()
		input = "b"
		if err := l.ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "sources have changed") {
			t.Errorf("with other sources: %v", err)
		}
		l.hold.Release() // as a failing step does
		if _, err := memory.Take(t.Context(), "other", 100); err != nil {
			t.Error(err)
		}
	})
}

func TestObjectsOfAProvisionAreBounded(t *testing.T) {
	a := &run{target: &target{}, log: &provision.Log{}}
	objects := make([]object, mostObjects)
	for step := range maxOfProvision / mostObjects {
		if err := a.remember(fmt.Sprint(step), objects); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.remember("more", objects[:1]); !errors.As(err, new(invalidError)) || !strings.Contains(err.Error(), "the steps have 4001 objects, and at most 4000") {
		t.Errorf("one too many: %v", err)
	}
}

// A step of at most 64 KiB is held without a turn and read only once.
func TestASmallStepIsReadOnce(t *testing.T) {
	s := newStage(t)
	s.has("small")
	s.source("small", "a", "b")
	p, err := s.attempt()
	if err != nil || done(p) != "small" {
		t.Fatal(err)
	}
	is := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "large"}, Data: map[string]string{}}
	for n := range 3 {
		is.Data[fmt.Sprint("text-", n)] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: large-%d}, data: {a: %s}}", n, strings.Repeat("x", maxSmall))
	}
	if err := s.here.Create(t.Context(), is); err != nil {
		t.Fatal(err)
	}
	s.has("large")
	if p, err = s.attempt(); err != nil || done(p) != "large" || len(s.target.objects) != 5 {
		t.Errorf("a large step: %v, done %s, %d objects", err, done(p), len(s.target.objects))
	}
}

// A namespace with a silent target holds memory for a minute if another namespace waits, and longer
// if none does.
func TestMemoryIsGivenBackToANeighbor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newBounds().memory
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 6 {
			namespace := fmt.Sprint("attacker-", n)
			take := func() (*budget.Hold, error) {
				hold, err := memory.Take(ctx, namespace, maxDecoding)
				if err == nil {
					hold.Shrink(6 << 20)
				}
				return hold, err
			}
			all.Go(func() {
				for ctx.Err() == nil {
					hold, err := take()
					if err != nil {
						return
					}
					l := &load{objects: []object{{body: []byte("{}")}}, hold: hold, since: time.Now(), large: true}
					request, cancel := context.WithTimeout(ctx, requestTimeout)
					turn, end := l.turn(request)
					<-turn.Done()
					end()
					cancel()
					l.drop()
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		hold, err := memory.Take(t.Context(), "shop", maxDecoding)
		if took := time.Since(began); err != nil || took > holdTime+time.Second {
			t.Errorf("a neighbor waits for %s, %v, want %s at most", took, err, holdTime)
		}
		if err == nil {
			hold.Release()
		}
		stop()
		all.Wait()
	})
}
