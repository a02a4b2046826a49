// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

func private(last byte) lb.Frontend {
	return lb.Frontend{Name: fmt.Sprint("a", last), Family: lb.IPv4, Subnet: "/subnets/nodes", PrivateIP: netip.AddrFrom4([4]byte{10, 0, 0, last})}
}

// internal returns a world whose load balancer, already gone, has the given private addresses in
// the journal.
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

// privates returns the private addresses of the load balancer, in order.
func (w *world) privates() (ips string) {
	if w.balancer == nil {
		return ""
	}
	for _, f := range w.balancer.Frontends {
		ips += f.PrivateIP.String() + " "
	}
	return ips
}

// A crash leaves private addresses free. If the next process can't read Azure, nothing else may
// take them.
func TestAReadThatFailsAfterARestart(t *testing.T) {
	for _, at := range []string{"list load balancers", "list public IPs"} {
		for _, apart := range []bool{false, true} {
			w, once := internal(9), true
			w.kept.TrafficStopped = apart
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

// A started migration completes although it was disabled; another one does not start.
func TestMigrationThatIsNoLongerRequested(t *testing.T) {
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

// taken makes Azure reject the given addresses, with a message that names them if names is true.
func (w *world) taken(names bool, taken ...string) {
	w.refuses = func(b lb.LoadBalancer) error {
		for _, f := range b.Frontends {
			for _, ip := range taken {
				switch {
				case f.PrivateIP.String() != ip:
				case names:
					return &armerror.Fault{Class: armerror.Terminal, Code: "PrivateIPAddressIsAllocated", Message: fmt.Sprintf("static private IP address %s is allocated to resource x", ip)}
				default:
					return refusal("PrivateIPAddressIsAllocated")
				}
			}
		}
		return nil
	}
}

// The Basic load balancer is still being deleted while GET already returns 404: its addresses are
// waited for.
func TestAddressesThatADeletionHolds(t *testing.T) {
	for _, names := range []string{place.String() + "/frontendIPConfigurations/a9", "load balancer kubernetes"} {
		w, refusals := internal(9, 10), 150
		w.refuses = func(b lb.LoadBalancer) error {
			if refusals--; refusals < 0 || len(b.Frontends) == 0 {
				return nil
			}
			return &armerror.Fault{Class: armerror.Terminal, Code: "PrivateIPAddressInUse", Message: fmt.Sprintf("Private IP address %s is in use by %s", b.Frontends[0].PrivateIP, names), Err: errors.New("write load balancer kubernetes: 400")}
		}
		if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.10 " || !w.kept.Done || w.kept.HasClaims(phase.UserRequests{}) {
			t.Errorf("%s: there is %q after %d calls, %+v", names, w.privates(), len(w.calls), w.kept)
		}
	}
}

// A message that names only the requester affects no other address: the rejected one becomes a
// claim after a while.
func TestAMessageThatNamesWhatAsks(t *testing.T) {
	w := internal(9, 10, 11)
	w.refuses = func(b lb.LoadBalancer) error {
		for _, f := range b.Frontends {
			if f.PrivateIP.String() == "10.0.0.10" {
				return &armerror.Fault{Class: armerror.Terminal, Code: "PrivateIPAddressInUse", Message: "IP configuration " + place.String() + "/frontendIPConfigurations/a10 uses an address that is in use", Err: errors.New("400")}
			}
		}
		return nil
	}
	if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.11 " || !w.kept.HasClaims(phase.UserRequests{}) {
		t.Errorf("there is %q after %d calls, %+v", w.privates(), len(w.calls), w.kept)
	}
}

// Another system takes a private address in between: all others stay, and the address is a claim until
// a user gives it up.
func TestPrivateAddressTakenByAnother(t *testing.T) {
	for _, names := range []bool{true, false} {
		w := internal(9, 10, 11, 12)
		w.taken(names, "10.0.0.10", "10.0.0.11")
		owed := &AddressClaims{}
		w.owed = owed
		if !w.run(t) || w.privates() != "10.0.0.9 10.0.0.12 " || !w.kept.Done {
			t.Errorf("named %t: there is %q after %q", names, w.privates(), w.calls)
		}
		for _, last := range []byte{10, 11} {
			f := private(last)
			if ip, ok := owed.Address(f); !ok || ip != f.PrivateIP {
				t.Errorf("named %t: %s is not owed", names, f.PrivateIP)
			}
			requested, err := phase.UserRequests{}.ReleaseAddress(w.kept, f.PrivateIP, phase.UserRequest{By: "jane"})
			if owed.update(w.kept, requested); err != nil {
				t.Error(err)
			}
			if _, ok := owed.Address(f); ok {
				t.Errorf("named %t: %s is owed though a user has given it up", names, f.PrivateIP)
			}
			owed.update(w.kept, phase.UserRequests{})
		}
		for _, lost := range []string{"10.0.0.10", "10.0.0.11"} {
			if !strings.Contains(w.said.String(), "an address is not where it was: "+lost+" (private") {
				t.Errorf("nobody says that %s is lost\n%s", lost, w.said.String())
			}
		}
	}
}

// A missing permission or an unreachable Azure is not a rejection of an address.
func TestARefusalThatIsNotAboutAddresses(t *testing.T) {
	for _, f := range []*armerror.Fault{
		{Class: armerror.Terminal, Code: "AuthorizationFailed", Reason: "refused", Err: errors.New("no")},
		{Class: armerror.Terminal, Code: "PrivateIPAddressServiceUnavailable", Reason: "sdk_exhausted", Err: errors.New("503")},
	} {
		w, fails := internal(9, 10), 5
		for at := range w.kept.LoadBalancers[0].Addresses {
			w.kept.LoadBalancers[0].Addresses[at].StatusOnly = true
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

// An address known only from a status is given up alone: the others of its load balancer are
// created.
func TestOneReportedAddressThatAzureRejects(t *testing.T) {
	w := internal(9, 10)
	w.kept.LoadBalancers[0].Addresses[1].StatusOnly = true
	w.taken(false, "10.0.0.10")
	if !w.run(t) || w.privates() != "10.0.0.9 " {
		t.Errorf("there is %q after %q", w.privates(), w.calls)
	}
}

// A failed earlier attempt left a journal: the load balancer's current frontends win.
func TestAJournalOfAnEarlierTry(t *testing.T) {
	w := newWorld()
	w.services, w.balancer.Frontends = nil, []lb.Frontend{private(9)}
	w.ip.UsedBy, w.ip.SKU = "", lb.Standard
	w.kept = w.stock()
	w.balancer.Frontends[0].PrivateIP = netip.MustParseAddr("10.0.0.77")
	w.balancer.Rules, w.services = nil, []phase.Service{{Name: "ns/db", Owner: "a9"}}
	if !w.run(t) || w.privates() != "10.0.0.77 " || !w.kept.Done {
		t.Errorf("there is %q after %q\n%s", w.privates(), w.calls, w.said.String())
	}
}

// A request without a response is retried.
func TestARequestThatHangs(t *testing.T) {
	w := newWorld()
	w.hangs = true
	if !w.run(t) || w.ip.SKU != lb.Standard || w.ip.Address != first {
		t.Errorf("%+v after %q\n%s", w.ip, w.calls, w.said.String())
	}
}

// An invalid journal blocks nothing if nothing is Basic; otherwise it may hold addresses.
func TestUnreadableJournal(t *testing.T) {
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

// Nothing is created that only the journal names, and not azure.json.
func TestAJournalOfOtherLoadBalancers(t *testing.T) {
	for _, apart := range []bool{false, true} {
		w := internal(9)
		w.kept.TrafficStopped, w.kept.LoadBalancers[0].ID.Name = apart, "another"
		if w.run(t) == apart || len(w.writes()) > 0 || !strings.Contains(w.said.String(), "load balancer another of resource group rg, which is not the cluster's") {
			t.Errorf("apart %t: %q\n%s", apart, w.calls, w.said.String())
		}
	}
}

// If nothing can be read, the migration is given up.
func TestAzureRefusesTheFirstLook(t *testing.T) {
	w := newWorld()
	w.fails = func(string) error { return refusal("AuthorizationFailed") }
	if !w.run(t) || strings.Contains(w.said.String(), "stay Basic") || !strings.Contains(w.said.String(), "could not be read") {
		t.Error(w.said.String())
	}
}

// The machine that blocks the migration is named.
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

// Dry runs, and Services whose frontend is on another load balancer of the cluster, cause nothing.
func TestServicesThatCauseNothing(t *testing.T) {
	for about, changed := range map[string]func(*world, *phase.Service){
		"a dry run":                     func(_ *world, s *phase.Service) { s.Skip = true },
		"it is elsewhere":               func(w *world, s *phase.Service) { w.balancer.Frontends = []lb.Frontend{{Name: "A2"}} },
		"its address is elsewhere":      func(w *world, s *phase.Service) { w.balancer.Frontends = []lb.Frontend{private(9)} },
		"its address is of a public IP": func(w *world, s *phase.Service) { s.Addresses[0] = first },
	} {
		w := newWorld()
		w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard
		w.services = []phase.Service{{
			Name: "ns/db", LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes-internal"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
			Frontends: []lb.Frontend{{Name: "a2", Family: lb.IPv4, Subnet: "/subnets/nodes"}},
		}}
		changed(w, &w.services[0])
		looked := 1
		if w.services[0].Addresses[0] == first {
			looked = 2 // public IP reads
		}
		if !w.run(t) || len(w.calls) != looked || len(w.writes()) > 0 {
			t.Errorf("%s: %q", about, w.calls)
		}
	}
}

// A missing load balancer was deleted by a migration: preflight findings no longer block.
func TestALoadBalancerThatIsGone(t *testing.T) {
	w := newWorld()
	w.kept = w.stock()
	w.balancer, w.nics, w.ip.UsedBy, w.ip.Static, w.brought = nil, nil, "", true, true
	if plan, err := BuildPlan(t.Context(), w.config()); err != nil || plan.State != PlanStarted {
		t.Errorf("the plan is %s, %v", plan.State, err)
	}
	if !w.run(t) || w.ip.SKU != lb.Standard {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}

// A frontend without an address would be lost: no machine leaves for it, and nothing waits.
func TestAFrontendWithoutAnAddress(t *testing.T) {
	w := newWorld()
	w.balancer.Frontends = append(w.balancer.Frontends, lb.Frontend{Name: "a1-IPv6", Subnet: "/subnets/nodes"})
	if !w.run(t) || w.balancer.SKU != lb.Basic || len(w.nics[0].IPConfigurations[0].Pools) != 1 || !strings.Contains(w.said.String(), "remain Basic: frontend a1-IPv6") {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}

// An unreachable Azure has not rejected anything. A write without a response may have succeeded, so
// the migration must complete.
func TestUnreachableAzureIsNoRejection(t *testing.T) {
	w, once := newWorld(), true
	w.fails = func(call string) error {
		if strings.HasPrefix(call, "put public IP Basic") && once {
			once = false
			return &armerror.Fault{Class: armerror.Terminal, Reason: "sdk_exhausted", Err: errors.New("503")}
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
			return &armerror.Fault{Class: armerror.Retriable, MayBeApplied: true, Err: errors.New("no answer")}
		}
		return refusal("AuthorizationFailed")
	}
	if w.run(t) || !w.kept.TrafficStopped {
		t.Errorf("it has given up, apart %t: %q", w.kept.TrafficStopped, w.calls)
	}
}
