// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/service"
)

// A Service sets Azure properties by annotations. Removing them restores Azure's defaults, which a value of another
// client survives. No node joins early with AllProbedUp.
func TestPropertiesByAnnotation(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		expect := func(when string, up, tracks bool) {
			t.Helper()
			body, _ := s.emulator.Get(network + "loadBalancers/" + clusterName)
			got := strings.ReplaceAll(string(body), " ", "")
			if strings.Contains(got, `"AllProbedUp"`) != up || strings.Contains(got, `"enableConnectionTracking":true`) != tracks {
				failOn(fmt.Errorf("%s: %s", when, got))
			}
		}
		annotate := func(behavior, tracking string) {
			failOn(s.ChangeService("shop/web", func(svc *corev1.Service) {
				setAnnotation(svc, service.NoHealthyBackends, behavior)
				setAnnotation(svc, service.ConnectionTracking, tracking)
			}))
			s.Sleep(2 * time.Minute)
		}
		newLocalService(s)
		annotate("AllProbedUp", "true")
		expect("set", true, true)
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: false}))
		s.Sleep(time.Minute)
		s.expectMembers("with AllProbedUp", "0")
		annotate("up", "true")
		expect("an invalid value changes nothing", true, true)
		s.KillProcess(0)
		annotate("", "")
		expect("removed", false, false)
		s.Sleep(time.Minute)
		s.expectMembers("with AllProbedDown", "0 1")

		id := network + "loadBalancers/" + clusterName
		body, _ := s.emulator.Get(id)
		text := strings.ReplaceAll(string(body), `"noHealthyBackendsBehavior":"AllProbedDown"`, `"noHealthyBackendsBehavior":"AllProbedUp"`)
		failOn(s.emulator.Put(id, []byte(strings.ReplaceAll(text, `"enableConnectionTracking":false`, `"enableConnectionTracking":true`))))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, annotation+"azure-load-balancer-tcp-idle-timeout", "7") }))
		s.Sleep(2 * time.Minute)
		expect("set by another client", true, true)
	})
}

// The pool of a Service gets its drain period, which writes of members keep and which is removed with the annotation. The
// pool of all nodes never gets one.
func TestDrainPeriodByAnnotation(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		expect := func(when string, want int) {
			t.Helper()
			body, _ := s.emulator.Get(network + "loadBalancers/" + clusterName)
			if got := strings.Count(strings.ReplaceAll(string(body), " ", ""), `"drainPeriodInSeconds":30`); got != want {
				failOn(fmt.Errorf("%s: %d pools with a drain period, want %d: %s", when, got, want, body))
			}
		}
		annotate := func(name, seconds string) {
			failOn(s.ChangeService(name, func(svc *corev1.Service) { setAnnotation(svc, service.DrainPeriod, seconds) }))
			s.Sleep(2 * time.Minute)
		}
		newLocalService(s)
		failOn(s.AddService("shop/all", nil))
		annotate("shop/all", "30")
		expect("a Service in the pool of all nodes", 0)
		annotate("shop/web", "30")
		expect("set", 1)
		failOn(s.SetEndpoints("shop/web", map[int]bool{0: true, 1: true}))
		s.Sleep(2 * time.Minute)
		s.expectMembers("members change", "0 1")
		expect("members change", 1)
		annotate("shop/web", "-1")
		expect("an invalid value changes nothing", 1)
		s.KillProcess(0)
		annotate("shop/web", "")
		expect("removed", 0)
		failOn(s.WaitInSync(10 * time.Minute))
	})
}
