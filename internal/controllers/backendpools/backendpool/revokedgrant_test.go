// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
)

// flappingOwner is an owner that grants and revokes a pool.
type flappingOwner struct {
	*world
	rejected bool
}

// Permission implements Owner.
func (f *flappingOwner) Permission(p *v1alpha1.BackendPool, at lb.PoolID) (Permission, Rejection) {
	if f.rejected {
		return NoPermission, Rejection{Reason: v1alpha1.ReasonNotAllowed, Message: "no"}
	}
	return f.world.Permission(p, at)
}

// A running attempt is dropped after a revoked grant, which returns before the next reconciliation.
func TestChangeOutlivesMissingPermission(t *testing.T) {
	d := newFixture(t, func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{}}
	})
	d.world.nodes["n1"] = nodeIP("n1")
	f := &flappingOwner{world: d.world}
	d.Owner = f
	d.reconcileNow()
	if len(d.workers.ops) != 1 {
		t.Fatal(d.workers.ops)
	}
	op := d.workers.ops[0]
	d.workers.ops = nil
	if !d.IsNeeded(op) {
		t.Fatal("not relevant")
	}
	if _, err := d.DesiredPool(op.Ref); err != nil {
		t.Fatal(err)
	}
	_ = d.Record(t.Context(), op.Ref, diff.Intent{Written: []netip.Addr{nodeIP("n1")}, Desired: 1, Add: 1})
	f.rejected = true
	if d.IsNeeded(op) {
		t.Error("relevant without a grant")
	}
	f.rejected = false
	d.reconcileNow()
	if len(d.workers.ops) == 0 {
		t.Error("the change is lost")
	}
}
