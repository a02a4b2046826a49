// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/apiserver"
)

// runStage runs a test on its own stage in virtual time.
func runStage(t *testing.T, opts Options, explanation func(s *Stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.Settle = synctest.Wait
		s, err := New(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if failed := recover(); failed != nil {
				if err, ok := failed.(failure); ok {
					t.Error(err)
				} else {
					t.Errorf("panic: %v\n%s", failed, debug.Stack())
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(s.Log())
			}
		}()
		explanation(s)
	})
}

// failure is the panic value that ends a test.
type failure struct{ error }

// failOn aborts the test on an error.
func failOn(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func TestWeirStartsAndStopsInVirtualTime(t *testing.T) {
	for range 2 {
		runStage(t, Options{}, func(s *Stage) {
			s.Start()
			s.Sleep(time.Minute)
		})
	}
}

func TestAServiceIsServed(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		failOn(s.WaitInSync(2 * time.Minute))
		s.Sleep(settleTime)
		failOn(s.CheckIdleHour(400))
		failOn(s.DeleteService("shop/web"))
		failOn(s.WaitInSync(2 * time.Minute))
		s.Sleep(settleTime)
		failOn(s.CheckIdleHour(400))
	})
}

// A process that is stopped before the initial list is complete stops.
func TestStoppedBeforeTheCachesAreFilled(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		s.APIFault(0, apiserver.Fault{Resource: "services", Hang: true})
		s.Start()
		s.Sleep(3 * time.Second)
		began := time.Now()
		s.replicas[0].stopProcess()
		if elapsed := time.Since(began); elapsed > 5*time.Second {
			failOn(fmt.Errorf("it took %s to stop", elapsed))
		}
	})
}

// Of two processes only one writes; when it loses the API server it stops, and the other one
// continues.
func TestOnlyTheLeaderWrites(t *testing.T) {
	runStage(t, Options{Replicas: 2}, func(s *Stage) {
		for n := range 3 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		failOn(s.WaitInSync(5 * time.Minute))
		for i := range s.replicas {
			failOn(s.SetEndpoints("shop/web", map[int]bool{i: true}))
			s.APIFault(i, apiserver.Fault{Unreachable: true})
			s.Sleep(40 * time.Second)
			s.EndFaults()
			failOn(s.WaitInSync(5 * time.Minute))
		}
	})
}
