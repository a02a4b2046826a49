// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// A node that leaves for good is Down until its machine has left the pool. That is reported while
// other machines are still in progress.
func TestNodesAreDownBeforeTheirMachinesLeave(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "n1 n2")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(time.Second)
		w.set(func() { w.calls, w.reports, w.members.waits["n3"] = nil, nil, "instance 3 is Creating" })
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2 n3=10.0.0.3")
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2 n3=10.0.0.3")
		w.wait(4 * time.Second)
		w.expectInterfaces(web, "nic-n1/Down nic-n2")
		w.expectReports("web Postponed (admin) Down [10.0.0.1] admin done")
		w.expectDown("10.0.0.1")
		w.set(func() { delete(w.members.waits, "n3") })
		w.change(web, "n2=10.0.0.2 n3=10.0.0.3")
		w.wait(2 * time.Second)
		w.expectInterfaces(web, "nic-n1/Down nic-n2")
		w.expectDown("10.0.0.1")
		w.wait(10 * time.Second)
		w.expectInterfaces(web, "nic-n2 nic-n3")
		w.expectDown("")
	})
}

// An interface that joins during a write of admin states is harmless: Azure rejects the write,
// which is repeated, or shows one more member.
func TestAnInterfaceJoinsBesideAWriteOfStates(t *testing.T) {
	for _, refuses := range []bool{true, false} {
		t.Run(fmt.Sprint("refused ", refuses), func(t *testing.T) {
			inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
				w.nics(web, "n1")
				joined := false
				w.fail = func(call string, _ lb.PoolID) error {
					if call != "PUT" || joined {
						return nil
					}
					joined = true
					p := w.pools[web.Key()]
					p.Addresses = append(slices.Clone(p.Addresses), lb.Address{Name: "rg_nic-n2", Interface: "nic-n2"})
					if !refuses {
						return nil
					}
					p.Etag = nextEtag(p.Etag)
					return armerror.Classify(armerror.Failure{Status: 400, Codes: []string{codeInterfaceMember}}, fmt.Errorf("an interface joined"))
				}
				w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
				w.wait(5 * time.Second)
				for _, r := range w.reports {
					if r.Fault != nil && r.Outcome != diff.Postponed {
						t.Errorf("%s: %v", r.Outcome, r.Fault)
					}
				}
				w.expectDown("10.0.0.1")
			})
		})
	}
}

// Azure does not mix the kinds. Without machine writes such a pool is left unchanged.
func TestPoolsOfTheOtherKind(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.pool(web, "n1=10.0.0.1")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(time.Minute)
		w.expectCalls("+250ms GET web")
		if f := w.reports[0].Fault; f.Code != diff.CodeAddressPool || w.reports[0].Outcome != diff.Rejected {
			t.Errorf("%+v", f)
		}
	})
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.lanes.cfg.Members = nil
		w.nics(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectCalls("+250ms GET web")
		w.expectReports("web Refused")
	})
}

// Overlapping and load balancer writes put no address into such a pool and leave it to separate
// updates.
func TestMachinesBesideOtherWrites(t *testing.T) {
	azure := piped{whole: &whole{}}
	cfg := Config{MaxRetries: 3, LoadBalancers: &azure, Pipeline: &azure}
	inMemberWorld(t, cfg, func(w *world) {
		azure.world = w
		var pools []lb.PoolID
		for i := range 4 {
			pools = append(pools, poolID("kubernetes", fmt.Sprintf("p%d", i+1)))
			w.nics(pools[i], "")
			w.change(pools[i], "n1=10.0.0.1")
		}
		w.wait(20 * time.Second)
		for _, id := range pools {
			w.expectInterfaces(id, "nic-n1")
		}
		if got := strings.Join(w.calls, "; "); strings.Contains(got, "PUT") || strings.Contains(got, "BEGIN") {
			t.Error(got)
		}
	})
	behaves := behavior.Behavior{UpdateAddresses: behavior.Accepted, UpdateAdminStates: behavior.Accepted, UpdateNewPools: behavior.Populated}
	inMemberWorld(t, Config{MaxRetries: 3, Behaviour: behaves}, func(w *world) {
		w.nics(web, "")
		unlock := w.hold()
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.wait(time.Second)
		planned := w.whole(web, api)
		planned[1].Addresses = addresses("n1=10.0.0.1")
		next, written := w.lanes.StagePools(web.LoadBalancer, planned)
		for _, p := range next {
			if len(p.Addresses) > 0 || p.VirtualNetwork != "" {
				t.Errorf("%s gets %v", p.ID.Name, p.Addresses)
			}
		}
		w.set(func() { w.nics(api, "") })
		written(w.whole(web, api), false)
		unlock()
		w.wait(20 * time.Second)
		w.expectInterfaces(web, "nic-n1")
		w.expectInterfaces(api, "nic-n1")
	})
}

// All pools of a load balancer are checked by one read, also after a start. Each is handed over
// once, and again only after a change.
func TestLooksAtMachines(t *testing.T) {
	var azure whole
	cfg := Config{MaxRetries: 3, LoadBalancers: &azure, ResyncPeriod: period}
	inMemberWorld(t, cfg, func(w *world) {
		azure.world = w
		var pools []lb.PoolID
		for i := range 4 {
			pools = append(pools, poolID("kubernetes", fmt.Sprintf("p%d", i+1)))
			w.nics(pools[i], "n1")
			w.look(pools[i], "n1=10.0.0.1")
		}
		w.wait(time.Minute)
		if len(w.members.targets) != len(pools) {
			t.Errorf("%d pools were handed over", len(w.members.targets))
		}
		w.set(func() { w.calls, w.reports = nil, nil })
		w.wait(3 * period)
		if w.reads() != 3 || len(w.reports) != 3*len(pools) || strings.Contains(fmt.Sprint(w.calls), "BRING") {
			t.Errorf("%d reads, %d reports: %q", w.reads(), len(w.reports), w.calls)
		}
		w.set(func() { w.nics(pools[2], ""); w.reports = nil })
		w.wait(period + time.Minute)
		w.expectInterfaces(pools[2], "nic-n1")
	})
}

// A released pool is forgotten by the machine updater: no machine joins or leaves for it.
func TestReleasedPool(t *testing.T) {
	inMemberWorld(t, Config{MaxRetries: 3}, func(w *world) {
		w.nics(web, "n1 other n5")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.lanes.Drop(schedule.Ref{Name: "web"})
		w.lanes.Drop(schedule.Ref{Name: "web"})
		if len(w.members.targets) != 0 || strings.Count(fmt.Sprint(w.calls), "FORGET") != 1 {
			t.Errorf("%q", w.calls)
		}
		w.change(web, "") // its BackendPool is deleted
		w.wait(10 * time.Second)
		w.expectInterfaces(web, "nic-other nic-n5") // an unrecorded node that is not managed
		w.lanes.Forget(web)
		if len(w.members.targets) != 0 {
			t.Error("the lanes of machines keep it")
		}
	})
}
