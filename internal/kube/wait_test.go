// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// Nothing waits any more when nothing is tried any more.
func TestNothingStaysParkedThatIsNotTried(t *testing.T) {
	for name, then := range map[string]func(d *desk){
		"the Service goes before the first write": func(d *desk) { d.serviceGoes() },
		"a pause":                             func(d *desk) { d.becomes(paused) },
		"nobody can tell which pool is meant": func(d *desk) { d.becomes(func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "../x" }) },
	} {
		t.Run(name, func(t *testing.T) {
			d := atDesk(t)
			d.reconciles()
			d.waits()
			d.parked(true)
			then(d)
			d.reconciles()
			d.parked(false)
		})
	}
	t.Run("an attempt begins", func(t *testing.T) {
		d := atDesk(t)
		d.waits()
		if err := d.Record(t.Context(), refOf(d.p), poolupdate.Intent{Written: ours, Add: 1}); err != nil {
			t.Fatal(err)
		}
		d.parked(false)
		d.says(v1alpha1.ReasonUpdating, "adding 1")
	})
	t.Run("something of our own is not ready", func(t *testing.T) {
		d := atDesk(t)
		d.waits()
		d.reports(poolupdate.Postponed)
		d.parked(false)
	})
}

// What a wait means for the status depends on what the BackendPool is entitled to by now.
func TestAWaitIsSaidWhereSomethingWaits(t *testing.T) {
	t.Run("paused meanwhile", func(t *testing.T) {
		d := atDesk(t)
		d.becomes(paused)
		d.reconciles()
		d.waits()
		d.parked(false)
		d.says(v1alpha1.ReasonPaused, "")
		d.reports(poolupdate.Postponed)
		d.says(v1alpha1.ReasonPaused, "")
	})
	t.Run("another pool by now", func(t *testing.T) {
		d := atDesk(t)
		d.waits(func(w *poolupdate.Waiting) { w.Pool = lb.PoolID{LoadBalancer: w.Pool.LoadBalancer, Name: "before"} })
		d.parked(false)
		d.waits(func(w *poolupdate.Waiting) { w.Pool.Name = strings.ToUpper(w.Pool.Name) }) // Azure folds case
		d.parked(true)
	})
	t.Run("another BackendPool of the name", func(t *testing.T) {
		d := atDesk(t)
		d.waits(func(w *poolupdate.Waiting) { w.Ref.UID = "before" })
		d.parked(false)
	})
	t.Run("a removal wants nobody", func(t *testing.T) {
		d := atDesk(t)
		if err := d.snap.nodes.Add(nodeAt("n1")); err != nil {
			t.Fatal(err)
		}
		d.becomes(took, func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{} })
		d.status().PoolID = d.p.Status.PoolID
		d.waits()
		if got := *d.status().Desired; got != 1 {
			t.Errorf("desired %d, want the node", got)
		}
		d.becomes(deleting)
		d.waits()
		if got := *d.status().Desired; got != 0 {
			t.Errorf("desired %d by a BackendPool that goes", got)
		}
	})
	t.Run("a retry of which nothing is known", func(t *testing.T) {
		d := atDesk(t)
		setCondition(d.status(), 1, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRetrying, "")
		d.waits()
		d.says(v1alpha1.ReasonUpdating, "a change of the members waits: writes are closed")
	})
}
