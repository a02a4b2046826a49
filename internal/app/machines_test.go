// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/nic/nicupdate"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

var _ nicupdate.Cluster = (*controllers.Controllers)(nil)

// With pools of network interfaces, Services share the pool of all nodes; without the resource lease none is
// configured.
func TestPoolsOfNetworkInterfacesAreWired(t *testing.T) {
	for given, want := range map[config.BackendPoolType]bool{"": true, config.NodeIP: false, "NODEIPCONFIGURATION": true} {
		cfg := config.Config{LoadBalancers: config.LoadBalancers{BackendPoolType: given}}
		s, err := loadBalancerSettings(cfg, "kubernetes")
		if err != nil || s.Interfaces != want {
			t.Errorf("%q: %v, %v", given, s.Interfaces, err)
		}
	}
	cfg := config.Config{Cloud: config.Cloud{SubscriptionID: "s", ResourceGroup: "rg"}}
	for given, want := range map[*int]int{nil: 20, new(3): 3} {
		cfg.ParallelMachines = given
		if lanes := machineUpdaterConfig(Options{}, cfg, nil, nil, nil); lanes.Home.ResourceGroup != "rg" || lanes.Lease != nil || lanes.Parallel != want || lanes.Azure == nil {
			t.Errorf("lanes of machines: %+v", lanes)
		}
	}
}

// Machine writes pause only after a load balancer or pool write has lost two conflicts.
func TestMachinesWaitForConflictingUpdates(t *testing.T) {
	yields := 0
	yield := func() { yields++ }
	updates := metrics.NewPoolUpdates(prometheus.NewRegistry(), lb.LoadBalancerID{})
	reported := countConflicts(updates, yield)
	reported(loadbalancer.ResourceLoadBalancer, true)
	reported("public IP", false)
	if reported(loadbalancer.ResourceLoadBalancer, false); yields != 1 {
		t.Errorf("load balancers: %d waits, want 1", yields)
	}
	pools := measuredReporter{unheard{}, updates, yield}
	met := &armerror.Fault{Class: armerror.Retriable, Reason: "precondition_failed", Err: errors.New("412")}
	for _, r := range []updater.Report{
		{Outcome: diff.Written, HadConflict: true}, {Outcome: diff.Retriable, Fault: met}, {Outcome: diff.Retriable, Fault: met, HadConflict: true},
	} {
		pools.Report(t.Context(), r)
	}
	if yields != 2 {
		t.Errorf("pools: %d waits, want 1", yields-1)
	}
}

// unheard is a reporter without a receiver.
type unheard struct{ updater.Reporter }

func (unheard) Report(context.Context, updater.Report) {}
