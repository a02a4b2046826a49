// SPDX-License-Identifier: Apache-2.0

package provisioning

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
	"weir.dev/weir/internal/provisioning/policy"
)

// A silent target uses up the attempt's time before the step's sources are read.
func TestATargetThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
		step := v1alpha1.ProvisionStep{Name: "objects", Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: "is-not-there"}}}}
		w := newTestEnv(t, silent, newRemote(0, step, v1alpha1.RetryPolicy{AttemptTimeout: "22m"}, true)...)
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() {
			w.queueProvision(key)
			time.Sleep(22*time.Minute - time.Second)
			if got := w.getProvision(key); got.Status.State != v1alpha1.ProvisionRunning {
				t.Errorf("within its time it is %s", got.Status.State)
			}
			time.Sleep(5 * time.Second)
			if last := w.getProvision(key).Status.LastAttempt; last == nil || !strings.HasPrefix(last.Message, "the attempt's time was over") {
				t.Errorf("after its time the attempt is %+v", last)
			}
		})
	})
}

// A large step releases its memory while it waits and after a minute, and is read again. It fails
// if its sources changed.
func TestALargeStepIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, input, reads := NewFairBudget(100, 100), "a", 0
		read := func(ctx context.Context) (*loadedStep, error) {
			hold, err := memory.Acquire(ctx, "shop", 100)
			if err != nil {
				return nil, err
			}
			reads++
			return &loadedStep{objects: []object{{body: []byte("{}")}}, input: input, memory: hold, loadedAt: time.Now(), large: true}, nil
		}
		l, err := read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.reload = read
		current := func(about string, want int) {
			t.Helper()
			if err := l.ensureLoaded(t.Context()); err != nil || reads != want || l.objects[0].body == nil {
				t.Errorf("%s: read %d times, want %d, %v", about, reads, want, err)
			}
		}
		current("at once", 1)
		time.Sleep(turnTime - time.Second)
		current("within a minute", 1)
		time.Sleep(2 * time.Second)
		current("after a minute", 2)
		l.releaseMemory()
		other, err := memory.Acquire(t.Context(), "other", 100)
		if err != nil {
			t.Fatal("what waits holds memory")
		}
		other.Release()
		current("after it has waited", 3)
		l.releaseMemory()
		input = "b"
		if err := l.ensureLoaded(t.Context()); err == nil || !strings.Contains(err.Error(), "sources have changed") {
			t.Errorf("with other sources: %v", err)
		}
		l.memory.Release() // as a failing step does
		if _, err := memory.Acquire(t.Context(), "other", 100); err != nil {
			t.Error(err)
		}
	})
}

func TestObjectsOfAProvisionAreBounded(t *testing.T) {
	a := &run{target: &target{}, log: &policy.Log{}}
	objects := make([]object, maxObjects)
	for step := range maxProvisionObjects / maxObjects {
		if err := a.recordObjects(fmt.Sprint(step), objects); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.recordObjects("more", objects[:1]); !errors.As(err, new(invalidError)) || !strings.Contains(err.Error(), "the steps have 4001 objects, and at most 4000") {
		t.Errorf("one too many: %v", err)
	}
}

// A step of at most 64 KiB is held without a turn and read only once.
func TestASmallStepIsReadOnce(t *testing.T) {
	s := newStage(t)
	s.setSteps("small")
	s.setSources("small", "a", "b")
	p, err := s.runSteps()
	if err != nil || doneSteps(p) != "small" {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "large"}, Data: map[string]string{}}
	for n := range 3 {
		cm.Data[fmt.Sprint("text-", n)] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: large-%d}, data: {a: %s}}", n, strings.Repeat("x", maxFreeBytes))
	}
	if err := s.here.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	s.setSteps("large")
	if p, err = s.runSteps(); err != nil || doneSteps(p) != "large" || len(s.target.objects) != 5 {
		t.Errorf("a large step: %v, done %s, %d objects", err, doneSteps(p), len(s.target.objects))
	}
}

// A namespace with a silent target holds memory for a minute if another namespace waits, and longer
// if none does.
func TestMemoryIsGivenBackToANeighbor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := newLimits().memory
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n := range 6 {
			namespace := fmt.Sprint("attacker-", n)
			take := func() (*FairReservation, error) {
				hold, err := memory.Acquire(ctx, namespace, maxDecodeMemory)
				if err == nil {
					hold.ReduceTo(6 << 20)
				}
				return hold, err
			}
			wg.Go(func() {
				for ctx.Err() == nil {
					hold, err := take()
					if err != nil {
						return
					}
					l := &loadedStep{objects: []object{{body: []byte("{}")}}, memory: hold, loadedAt: time.Now(), large: true}
					request, cancel := context.WithTimeout(ctx, requestTimeout)
					turn, end := l.withTurn(request)
					<-turn.Done()
					end()
					cancel()
					l.releaseMemory()
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		hold, err := memory.Acquire(t.Context(), "shop", maxDecodeMemory)
		if elapsed := time.Since(began); err != nil || elapsed > turnTime+time.Second {
			t.Errorf("a neighbor waits for %s, %v, want %s at most", elapsed, err, turnTime)
		}
		if err == nil {
			hold.Release()
		}
		stop()
		wg.Wait()
	})
}
