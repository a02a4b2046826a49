// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// flap is an owner that grants and revokes a pool.
type flap struct {
	*world
	refused bool
}

// Right implements Owner.
func (f *flap) Right(p *v1alpha1.BackendPool, at lb.PoolID) (Right, Refusal) {
	if f.refused {
		return NoRight, Refusal{Reason: v1alpha1.ReasonNotAllowed, Why: "no"}
	}
	return f.world.Right(p, at)
}

// A running attempt is dropped after a revoked grant, which returns before the next reconciliation.
func TestAChangeOutlivesAMomentWithoutRight(t *testing.T) {
	d := atDesk(t, func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{}}
	})
	d.world.nodes["n1"] = nodeAt("n1")
	f := &flap{world: d.world}
	d.Owner = f
	d.reconciles()
	if len(d.lanes.ops) != 1 {
		t.Fatal(d.lanes.ops)
	}
	op := d.lanes.ops[0]
	d.lanes.ops = nil
	if !d.Relevant(op) {
		t.Fatal("not relevant")
	}
	if _, err := d.Desired(op.Ref); err != nil {
		t.Fatal(err)
	}
	_ = d.Record(t.Context(), op.Ref, poolwrite.Intent{Written: []netip.Addr{nodeAt("n1")}, Desired: 1, Add: 1})
	f.refused = true
	if d.Relevant(op) {
		t.Error("relevant without a grant")
	}
	f.refused = false
	d.reconciles()
	if len(d.lanes.ops) == 0 {
		t.Error("the change is lost")
	}
}
