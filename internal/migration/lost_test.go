// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

func private(last byte) lb.Frontend {
	return lb.Frontend{Name: fmt.Sprint("a", last), Family: lb.IPv4, Subnet: "/subnets/nodes", PrivateIP: netip.AddrFrom4([4]byte{10, 0, 0, last})}
}

// internal is a world whose load balancer has these private addresses, and is gone already; the journal has
// them.
func internal(last ...byte) *world {
	w := newWorld()
	w.services, w.nics, w.balancer.Frontends = nil, nil, nil
	for _, n := range last {
		w.balancer.Frontends = append(w.balancer.Frontends, private(n))
	}
	w.ip.UsedBy, w.ip.SKU = "", lb.Standard
	w.kept = w.stock()
	w.balancer = nil
	return w
}

// privates are the private addresses of the load balancer, in their order.
func (w *world) privates() (all string) {
	if w.balancer == nil {
		return ""
	}
	for _, f := range w.balancer.Frontends {
		all += f.PrivateIP.String() + " "
	}
	return all
}

// Whoever dies in the middle leaves private addresses free. A read that Azure refuses to the next process does
// not have it let others take them.
func TestAReadThatFailsAfterARestart(t *testing.T) {
	for _, at := range []string{"list load balancers", "list public IPs"} {
		for _, apart := range []bool{false, true} {
			w, once := internal(9), true
			w.kept.Apart = apart
			w.fails = func(call string) error {
				if call != at || !once {
					return nil
				}
				once = false
				return refusal("Unreachable")
			}
			if !w.run(t) || w.privates() != "10.0.0.9 " || !w.balancer.Frontends[0].Static || !w.kept.Done {
				t.Errorf("%s, apart %t: there is %q after %q", at, apart, w.privates(), w.calls)
			}
		}
	}
}

// A migration that was begun comes to its end though people have taken the key out again; another one does not
// begin.
func TestAMigrationThatNobodyWantsAnyMore(t *testing.T) {
	w := internal(9)
	w.manual = true
	if !w.run(t) || w.privates() != "10.0.0.9 " {
		t.Errorf("there is %q after %q", w.privates(), w.calls)
	}
	w = newWorld()
	if w.manual = true; !w.run(t) || len(w.calls) > 0 {
		t.Errorf("nobody wants it: %q", w.calls)
	}
}

// taken has Azure refuse these addresses to the load balancer, with a text that names them, or none.
func (w *world) taken(names bool, taken ...string) {
	w.refuses = func(b lb.LoadBalancer) error {
		for _, f := range b.Frontends {
			for _, ip := range taken {
				switch {
				case f.PrivateIP.String() != ip:
				case names:
					return &fault.Fault{Class: fault.Terminal, Code: "PrivateIPAddressIsAllocated", Message: fmt.Sprintf("static private IP address %s is allocated to resource x", ip)}
				default:
					return refusal("PrivateIPAddressIsAllocated")
				}
			}
		}
		return nil
	}
}

// The deletion of the Basic load balancer still runs, and a GET of it answers 404 already: its addresses are waited for,
// however long it takes.
func TestAddressesThatADeletionHolds(t *testing.T) {
	for _, names := range []string{place.String() + "/frontendIPConfigurations/a9", "load balancer kubernetes"} {
		w, refusals := internal(9, 10), 150
		w.refuses = func(b lb.LoadBalancer) error {
			if refusals--; refusals < 0 || len(b.Frontends) == 0 {
				return nil
			}
			return &fault.Fault{Class: fault.Terminal, Code: "PrivateIPAddressInUse", Message: fmt.Sprintf("Private IP address %s is in use by %s", b.Frontends[0].PrivateIP, names), Err: errors.New("write load balancer kubernetes: 400")}
		}
		if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.10 " || !w.kept.Done || w.kept.IsOwing(migrate.Asked{}) {
			t.Errorf("%s: there is %q after %d calls, %+v", names, w.privates(), len(w.calls), w.kept)
		}
	}
}

// A message that names what asks alone holds up no other address: the one that is refused is owed after a while.
func TestAMessageThatNamesWhatAsks(t *testing.T) {
	w := internal(9, 10, 11)
	w.refuses = func(b lb.LoadBalancer) error {
		for _, f := range b.Frontends {
			if f.PrivateIP.String() == "10.0.0.10" {
				return &fault.Fault{Class: fault.Terminal, Code: "PrivateIPAddressInUse", Message: "IP configuration " + place.String() + "/frontendIPConfigurations/a10 uses an address that is in use", Err: errors.New("400")}
			}
		}
		return nil
	}
	if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.11 " || !w.kept.IsOwing(migrate.Asked{}) {
		t.Errorf("there is %q after %d calls, %+v", w.privates(), len(w.calls), w.kept)
	}
}

// Another system takes a private address between the end of the old load balancer and the new one: all others stay, and
// its Service is owed that one until a user gives it up.
func TestAPrivateAddressThatSomebodyTakes(t *testing.T) {
	for _, names := range []bool{true, false} {
		w := internal(9, 10, 11, 12)
		w.taken(names, "10.0.0.10", "10.0.0.11")
		owed := &Owed{}
		w.owed = owed
		if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.12 " || !w.kept.Done {
			t.Errorf("named %t: there is %q after %q", names, w.privates(), w.calls)
		}
		for _, last := range []byte{10, 11} {
			f := private(last)
			if ip, is := owed.Address(f); !is || ip != f.PrivateIP {
				t.Errorf("named %t: %s is not owed", names, f.PrivateIP)
			}
			asked, err := migrate.Asked{}.GiveUp(w.kept, f.PrivateIP, migrate.Wish{By: "jane"})
			if owed.set(w.kept, asked); err != nil {
				t.Error(err)
			}
			if _, is := owed.Address(f); is {
				t.Errorf("named %t: %s is owed though a user has given it up", names, f.PrivateIP)
			}
			owed.set(w.kept, migrate.Asked{})
		}
		for _, lost := range []string{"10.0.0.10", "10.0.0.11"} {
			if !strings.Contains(w.said.String(), "an address is not where it was: "+lost+" (private") {
				t.Errorf("nobody says that %s is lost\n%s", lost, w.said.String())
			}
		}
	}
}

// A right that is missing says nothing about an address, and Azure being away neither.
func TestARefusalThatIsNotAboutAddresses(t *testing.T) {
	for _, f := range []*fault.Fault{
		{Class: fault.Terminal, Code: "AuthorizationFailed", Reason: "refused", Err: errors.New("no")},
		{Class: fault.Terminal, Code: "PrivateIPAddressServiceUnavailable", Reason: "sdk_exhausted", Err: errors.New("503")},
	} {
		w, fails := internal(9, 10), 5
		for at := range w.kept.Balancers[0].Addresses {
			w.kept.Balancers[0].Addresses[at].Told = true
		}
		w.refuses = func(lb.LoadBalancer) error {
			if fails--; fails < 0 {
				return nil
			}
			return f
		}
		if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.10 " {
			t.Errorf("%s: there is %q after %q", f.Code, w.privates(), w.calls)
		}
	}
}

// What a status alone tells of is given up by itself: the others of its load balancer are made.
func TestOneToldAddressThatAzureRefuses(t *testing.T) {
	w := internal(9, 10)
	w.kept.Balancers[0].Addresses[1].Told = true
	w.taken(false, "10.0.0.10")
	if !w.run(t) || w.privates() != "10.0.0.9 " {
		t.Errorf("there is %q after %q", w.privates(), w.calls)
	}
}

// An earlier try that was given up has left a journal. What the load balancer shows by now is what stays.
func TestAJournalOfAnEarlierTry(t *testing.T) {
	w := newWorld()
	w.services, w.balancer.Frontends = nil, []lb.Frontend{private(9)}
	w.ip.UsedBy, w.ip.SKU = "", lb.Standard
	w.kept = w.stock()
	w.balancer.Frontends[0].PrivateIP = netip.MustParseAddr("10.0.0.77")
	w.balancer.Rules, w.services = nil, []migrate.Service{{Name: "ns/db", Owner: "a9"}}
	if !w.run(t) || w.privates() != "10.0.0.77 " || !w.kept.Done {
		t.Errorf("there is %q after %q\n%s", w.privates(), w.calls, w.said.String())
	}
}

// A request without an answer is sent again after a while.
func TestARequestThatHangs(t *testing.T) {
	w := newWorld()
	w.hangs = true
	if !w.run(t) || w.ip.SKU != lb.Standard || w.ip.Address != first {
		t.Errorf("%+v after %q\n%s", w.ip, w.calls, w.said.String())
	}
}

// A journal that nobody can read holds nobody up where nothing is Basic; elsewhere it may have addresses.
func TestAJournalThatNobodyCanRead(t *testing.T) {
	w := newWorld()
	if w.broken = true; w.run(t) || len(w.writes()) > 0 || !strings.Contains(w.said.String(), "delete the key") {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
	w = newWorld()
	w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard
	if w.broken = true; !w.run(t) || !strings.Contains(w.said.String(), "nothing is migrated") {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}

// Nothing is made that is named by a journal alone, and not by azure.json.
func TestAJournalOfOtherLoadBalancers(t *testing.T) {
	for _, apart := range []bool{false, true} {
		w := internal(9)
		w.kept.Apart, w.kept.Balancers[0].ID.Name = apart, "another"
		if w.run(t) == apart || len(w.writes()) > 0 || !strings.Contains(w.said.String(), "load balancer another of resource group rg, which is not the cluster's") {
			t.Errorf("apart %t: %q\n%s", apart, w.calls, w.said.String())
		}
	}
}

// Where nothing can be read nobody knows that anything is Basic.
func TestAzureRefusesTheFirstLook(t *testing.T) {
	w := newWorld()
	w.fails = func(string) error { return refusal("AuthorizationFailed") }
	if !w.run(t) || strings.Contains(w.said.String(), "stay Basic") || !strings.Contains(w.said.String(), "could not be read") {
		t.Error(w.said.String())
	}
}

// Whoever keeps all others waiting is named.
func TestAMachineThatCannotLeave(t *testing.T) {
	w := newWorld()
	second := w.nics[0]
	second.ID.Name = "n2"
	w.nics = append(w.nics, second)
	w.fails = func(call string) error {
		if call == "put interface n2" {
			return refusal("ScopeLocked")
		}
		return nil
	}
	if w.run(t) || strings.Count(w.said.String(), `level=WARN msg="migration to Standard load balancers: a request has failed" phase=Detach err="network interface n2`) < 2 {
		t.Error(w.said.String())
	}
}

// A dry run, and a Service whose frontend is on another load balancer of the cluster, have nothing made.
func TestServicesThatCauseNothing(t *testing.T) {
	for about, changed := range map[string]func(*world, *migrate.Service){
		"a dry run":                     func(_ *world, s *migrate.Service) { s.Idle = true },
		"it is elsewhere":               func(w *world, s *migrate.Service) { w.balancer.Frontends = []lb.Frontend{{Name: "A2"}} },
		"its address is elsewhere":      func(w *world, s *migrate.Service) { w.balancer.Frontends = []lb.Frontend{private(9)} },
		"its address is of a public IP": func(w *world, s *migrate.Service) { s.Shown[0] = first },
	} {
		w := newWorld()
		w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard
		w.services = []migrate.Service{{
			Name: "ns/db", Balancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes-internal"}, Shown: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
			Frontends: []lb.Frontend{{Name: "a2", Family: lb.IPv4, Subnet: "/subnets/nodes"}},
		}}
		changed(w, &w.services[0])
		looked := 1
		if w.services[0].Shown[0] == first {
			looked = 2 // at public IPs
		}
		if !w.run(t) || len(w.calls) != looked || len(w.writes()) > 0 {
			t.Errorf("%s: %q", about, w.calls)
		}
	}
}

// A load balancer that is gone is one that was taken apart: nothing that keeps a migration from starting counts.
func TestALoadBalancerThatIsGone(t *testing.T) {
	w := newWorld()
	w.kept = w.stock()
	w.balancer, w.nics, w.ip.UsedBy, w.ip.Static, w.brought = nil, nil, "", true, true
	if plan, err := Look(t.Context(), w.config()); err != nil || plan.State != Begun {
		t.Errorf("the plan is %s, %v", plan.State, err)
	}
	if !w.run(t) || w.ip.SKU != lb.Standard {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}

// A frontend that shows no address would be lost: no machine leaves for that, and nobody waits.
func TestAFrontendWithoutAnAddress(t *testing.T) {
	w := newWorld()
	w.balancer.Frontends = append(w.balancer.Frontends, lb.Frontend{Name: "a1-IPv6", Subnet: "/subnets/nodes"})
	if !w.run(t) || w.balancer.SKU != lb.Basic || len(w.nics[0].IPConfigurations[0].Pools) != 1 || !strings.Contains(w.said.String(), "stay Basic: frontend a1-IPv6") {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}

// Azure that is away has refused nothing, and a write without an answer may have landed: then there is no way back.
func TestWhatIsNoRefusal(t *testing.T) {
	w, once := newWorld(), true
	w.fails = func(call string) error {
		if strings.HasPrefix(call, "put public IP Basic") && once {
			once = false
			return &fault.Fault{Class: fault.Terminal, Reason: "sdk_exhausted", Err: errors.New("503")}
		}
		return nil
	}
	if !w.run(t) || w.ip.SKU != lb.Standard {
		t.Errorf("it has given up: %q", w.calls)
	}
	w, once = newWorld(), true
	w.fails = func(call string) error {
		switch {
		case call != "put interface n1":
			return nil
		case once:
			once = false
			return &fault.Fault{Class: fault.Retriable, Undecided: true, Err: errors.New("no answer")}
		}
		return refusal("AuthorizationFailed")
	}
	if w.run(t) || !w.kept.Apart {
		t.Errorf("it has given up, apart %t: %q", w.kept.Apart, w.calls)
	}
}
