// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// interfaces creates a pool of network interfaces with admin states after a slash.
func (w *world) interfaces(id lb.PoolID, names string) {
	p := &lb.Pool{ID: id, Etag: "1", NIC: true}
	for name := range strings.FieldsSeq(names) {
		name, state, _ := strings.Cut(name, "/")
		p.Addresses = append(p.Addresses, lb.Address{Name: "rg_" + name, Interface: name, AdminState: state})
	}
	w.pools[id.Key()] = p
	w.machines = map[string]netip.Addr{"n1": netip.MustParseAddr("10.0.0.1"), "n2": netip.MustParseAddr("10.0.0.2")}
}

// expectInterfaces compares the content of a pool of network interfaces.
func (w *world) expectInterfaces(id lb.PoolID, want string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for _, a := range w.pools[id.Key()].Addresses {
		name := a.Interface
		if a.AdminState != "" {
			name += "/" + a.AdminState
		}
		got = append(got, name)
	}
	if strings.Join(got, " ") != want {
		w.t.Errorf("pool %s holds %q, want %q", id.Name, got, want)
	}
}

// A leaving node is set Down in a pool of network interfaces, and nothing else changes: members,
// admin states set by others, interfaces without a node. That Weir does not fill the pool is
// reported as before.
func TestNodesLeaveAPoolOfInterfaces(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.interfaces(web, "nic-n1 nic-n2/Down nic-gateway")
		w.change(web, "n1=10.0.0.1 n3=10.0.0.3")
		w.wait(5 * time.Second)
		w.expectCalls("+250ms GET web") // no node leaves: machines are not read
		w.expectReports("web Refused")

		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2/Down n3=10.0.0.3/Down")
		w.wait(5 * time.Second)
		w.expectCalls("+5s GET web", "+5s MACHINES web", "+5s RECORD web [] Down [10.0.0.1]",
			"+5s PUT web rg_nic-n1=10.0.0.1/Down rg_nic-n2=10.0.0.2/Down rg_nic-gateway=invalid IP")
		w.expectInterfaces(web, "nic-n1/Down nic-n2/Down nic-gateway")
		w.expectReports("web Refused (admin) Down [10.0.0.1] admin done")
		w.expectDown("10.0.0.1")

		w.drain(web, "n2=10.0.0.2") // n1 has no pod of the Service any more
		w.wait(5 * time.Second)
		w.expectInterfaces(web, "nic-n1/None nic-n2/Down nic-gateway")
		w.expectReports("web Refused (admin) back [10.0.0.1] admin done")
		w.expectDown("")
	})
}

// An admin state change is retried until it works. A membership change in the same attempt is
// refused once, at no cost and without a failure.
func TestStatesOfInterfacesAreTriedAgain(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.interfaces(web, "nic-n1")
		failing := map[string]armerror.Failure{"MACHINES": {Status: 403}, "PUT": {Status: 409}}
		w.fail = func(call string, _ lb.PoolID) error {
			a, ok := failing[call]
			if !ok {
				return nil
			}
			delete(failing, call)
			return armerror.Classify(a, errors.New(call))
		}
		w.change(web, "n1=10.0.0.1/Down")
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(10 * time.Second)
		w.expectInterfaces(web, "nic-n1/Down")
		w.expectReports("web Terminal (admin) admin failed", "web Retriable (admin)", "web Refused (admin) Down [10.0.0.1] admin done")
		if n := w.lanes.Backlog().Operations; n != 0 {
			t.Errorf("%d operations wait", n)
		}
	})
}

// A lost Down may land after the node has stopped leaving: it is invalidated.
func TestALostDownOfAnInterfaceCannotLandLater(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.interfaces(web, "nic-n1")
		w.failing("PUT", 1, armerror.Failure{ResultUnknown: true})
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(500 * time.Millisecond)
		w.expectDown("10.0.0.1")
		before := w.pools[web.Key()].Etag
		w.drain(web, "n1=10.0.0.1")
		w.wait(2 * interval)
		if w.pools[web.Key()].Etag == before {
			t.Error("the lost write still has a valid etag")
		}
		w.expectDown("")
		w.expectInterfaces(web, "nic-n1")
	})
}

// The interface of a deleted node remains unchanged and recorded, because the node may register
// again with its machine. The record ends with the interface.
func TestTheInterfaceOfANodeThatHasGone(t *testing.T) {
	gone := func(w *world) {
		w.interfaces(web, "nic-n1 nic-n2")
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.set(func() { delete(w.machines, "n1") })
		w.drain(web, "n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectInterfaces(web, "nic-n1/Down nic-n2")
		w.expectDown("10.0.0.1")
	}
	inAdminWorld(t, func(w *world) {
		gone(w)
		w.drain(web, "n1=10.0.0.1/Down n2=10.0.0.2") // it is back, but its machine is not known yet
		w.wait(5 * time.Second)
		w.expectDown("10.0.0.1")
		w.set(func() { w.machines["n1"] = netip.MustParseAddr("10.0.0.1") })
		w.drain(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectInterfaces(web, "nic-n1/None nic-n2")
		w.expectDown("")
	})
	inAdminWorld(t, func(w *world) {
		gone(w)
		w.set(func() { w.pools[web.Key()].Addresses = w.pools[web.Key()].Addresses[1:] })
		w.drain(web, "n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectInterfaces(web, "nic-n2")
		w.expectDown("")
	})
}

// Setting an admin state does not take over a pool: if it is recreated for addresses, those of this
// cluster are managed.
func TestAPoolOfInterfacesBecomesOneOfAddresses(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.interfaces(web, "nic-n1")
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(5 * time.Second)
		w.expectDown("10.0.0.1")
		w.set(func() {
			w.pool(web, "n1=10.0.0.1 n2=10.0.0.2 other=10.9.9.9")
			w.nodes[netip.MustParseAddr("10.0.0.2")] = true
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1 other=10.9.9.9")
		w.expectDown("")
	})
}

// Without the setting, and in load balancer writes, such a pool is unchanged; admin states that
// were part of one are written separately.
func TestInterfacesBesideOtherWrites(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.interfaces(web, "nic-n1")
		w.change(web, "n1=10.0.0.1/Down")
		w.wait(5 * time.Second)
		w.expectCalls("+250ms GET web")
		w.expectReports("web Refused")
	})
	inPipedWorld(t, 4, always, func(w *piped, pools []lb.PoolID) {
		w.interfaces(pools[3], "nic-n1")
		w.drainAll(pools, "n1=10.0.0.1/Down")
		w.wait(10 * time.Second)
		w.expectInterfaces(pools[3], "nic-n1/Down")
		w.expectPool(pools[0], "vm=10.9.9.9 n1=10.0.0.1/Down")
		if got := strings.Join(w.calls, "; "); strings.Count(got, "BEGIN") != 3 || strings.Count(got, "PUT p4") != 1 {
			t.Error(got)
		}
	})
}
