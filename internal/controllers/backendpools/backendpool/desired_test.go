// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

func TestRelevant(t *testing.T) {
	web := schedule.ServiceName{Namespace: "shop", Name: "web"}
	none := schedule.ServiceName{}
	lbService, leaving := serviceOfType(corev1.ServiceTypeLoadBalancer), serviceOfType(corev1.ServiceTypeLoadBalancer)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"example.com/keeper"}
	for _, tt := range []struct {
		name    string
		pool    *v1alpha1.BackendPool
		service *corev1.Service
		op      func(*schedule.Operation)
		want    bool
	}{
		{"as it was queued", bp("a", 0), lbService, nil, true},
		{"another BackendPool of the name", bp("a", 0), lbService, func(o *schedule.Operation) { o.Ref.UID = "old" }, false},
		{"another pool", bp("a", 0), lbService, func(o *schedule.Operation) { o.Pool.Name = "old" }, false},
		{"the pool in other letters", bp("a", 0), lbService, func(o *schedule.Operation) { o.Pool.Name = "WEB" }, true},
		{"bound to another Service by now", bp("a", 0), lbService, func(o *schedule.Operation) { o.Service.Name = "old" }, false},
		{"its Service is gone", bp("a", 0, took), nil, nil, false},
		{"its Service is being deleted", bp("a", 0, took), leaving, nil, false},
		{"the removal after that", bp("a", 0, took), leaving, func(o *schedule.Operation) { o.Service = none }, true},
		{"the removal after it has gone", bp("a", 0, took), nil, func(o *schedule.Operation) { o.Service = none }, true},
		{"its Service was never there", bp("a", 0), nil, func(o *schedule.Operation) { o.Service = none }, false},
		{"being deleted", bp("a", 0, took, deleting), lbService, nil, false},
		{"the removal after that", bp("a", 0, took, deleting), lbService, func(o *schedule.Operation) { o.Service = none }, true},
		{"paused", bp("a", 0, took, asPaused), lbService, nil, false},
		{"no finalizer", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Finalizers = nil }), lbService, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := []any{tt.pool}
			if tt.service != nil {
				objects = append(objects, tt.service)
			}
			op := schedule.Operation{Ref: RefOf(tt.pool), Service: web,
				Pool: lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: "lb"}, Name: "web"}}
			if tt.op != nil {
				tt.op(&op)
			}
			if got := newCluster(t, objects...).IsNeeded(op); got != tt.want {
				t.Errorf("relevant %v, want %v", got, tt.want)
			}
		})
	}
}

// In pools that Weir created there is no other writer.
func TestOtherWritersOfPool(t *testing.T) {
	for _, created := range []bool{true, false} {
		p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
			if created {
				p.Status.MadeFor = v1alpha1.MadeForNodes
			}
		})
		c, e := newLoadedPool(t, p, nil, "n1")
		if want := c.desiredOf(t, e.ref); want.IsExclusive != created || len(want.Addresses) != 1 {
			t.Errorf("made by Weir: %v; %+v", created, want)
		}
	}
}

// In an interface pool that Weir created, every node is removed, recorded or not, because a scale set adds
// members itself. In other pools only recorded ones are.
func TestMembersLeavingInterfacePool(t *testing.T) {
	for _, created := range []bool{true, false} {
		p := bp("a", 0, took, deleting, func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef, p.Spec.Nodes, p.Spec.Membership = nil, &v1alpha1.NodeMembers{}, v1alpha1.MembershipNetworkInterface
			if created {
				p.Status.MadeFor = v1alpha1.MadeForNodes
			}
		})
		c, e := newLoadedPool(t, p, nil, "n1")
		want := c.desiredOf(t, e.ref)
		if want.Machines == nil || !want.Machines.Every || len(want.Addresses) > 0 || want.IsOwnAddress(nodeIP("n1")) != created {
			t.Errorf("made by Weir: %v; %+v", created, want)
		}
	}
}
