// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
)

// recordedName returns the recorded cluster name and another key of the ConfigMap; both are empty
// without a record.
func (l *lab) recordedName() (name, other string) {
	l.t.Helper()
	var m corev1.ConfigMap
	l.must(client.IgnoreNotFound(l.cluster.Get(l.t.Context(), key("weir-system", "weir-controller"), &m)))
	return m.Data["cluster-name"], m.Data["other"]
}

func (l *lab) isRecorded(name string) {
	l.t.Helper()
	l.eventually("the record", func() error {
		if got, other := l.recordedName(); got != name || other != "kept" {
			return fmt.Errorf("it has %q, and the entry of another controller is %q", got, other)
		}
		return nil
	})
}

// waitStandby waits until a controller's caches are synced, when it waits for leadership.
func (l *lab) waitStandby(weir *program) {
	l.t.Helper()
	l.eventually("readiness", func() error {
		if _, err := get(weir.health, "/readyz"); err != nil {
			return err
		}
		if !strings.Contains(weir.ReadOutput(), "Attempting to acquire leader lease") {
			return errors.New("it does not stand for the lead")
		}
		return nil
	})
}

// A replica waits for leadership under another --cluster-name. Only the leader writes the record:
// the replica checks it again once it leads, and adopts the name if no Service is bound; otherwise
// it exits as at start, without Azure writes.
func TestTheRecordIsTheLeaders(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.must(l.cluster.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}, Data: map[string]string{"other": "kept"},
	}))
	as := func(name string) *program { return l.controller("--cluster-name", name) }
	node := l.node("n1", "10.0.0.1")

	single := as(l.namespace + "-one")
	l.isRecorded(l.namespace + "-one")
	two := as(l.namespace + "-two")
	l.waitStandby(two)
	l.isRecorded(l.namespace + "-one")
	l.stopController(single) // two leads, and no Service is bound
	l.isRecorded(l.namespace + "-two")

	three := as(l.namespace + "-three")
	l.waitStandby(three)
	l.createLoadBalancerService("web", nil, node)
	ip := l.ingress("web", 1)[0]
	l.stopController(two)
	l.emulator.ClearCalls()
	if code := three.ExitCode(); code != 2 {
		t.Errorf("it ends with %d, want 2", code)
	}
	if want := `under the name "` + l.namespace + `-two"`; !strings.Contains(three.ReadOutput(), want) {
		t.Errorf("it does not say %s:\n%s", want, three.ReadOutput())
	}
	if calls := l.emulator.Calls(); len(calls) > 0 {
		t.Errorf("Azure saw %v", calls)
	}
	l.isRecorded(l.namespace + "-two")

	two = as(l.namespace + "-two")
	l.expectMetric(two, `weir_services{state="ready"} 1`)
	if now := l.ingress("web", 1)[0]; now != ip {
		t.Errorf("Service web had %s, and has %s", ip, now)
	}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: l.namespace}}
	l.must(l.cluster.Delete(t.Context(), web)) // other tests use another name
	l.gone("Service web", web)
}
