// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// all are the writes of a migration without failures, the journal first.
var all = []string{
	"keep the journal, members false, apart false, done false", "put public IP Basic Static true",
	"keep the journal, members true, apart false, done false", "put interface n1", "keep the journal, members true, apart true, done false",
	"keep that there is no way back", "delete load balancer",
	"put public IP Standard Static true", "put load balancer Standard with 1 frontends", "keep the journal, members true, apart true, done true",
}

func TestOneMigration(t *testing.T) {
	w := newWorld()
	if !w.run(t) || !slices.Equal(w.writes(), all) || w.ip.Address != first {
		t.Errorf("it has %s, after %q", w.ip.Address, w.writes())
	}
}

// If everything is Standard, the load balancers are listed and nothing else is requested.
func TestNothingToMigrate(t *testing.T) {
	w := newWorld()
	w.balancer.SKU, w.ip.SKU = lb.Standard, lb.Standard
	if !w.run(t) || !slices.Equal(w.calls, []string{"list load balancers"}) {
		t.Errorf("%q", w.calls)
	}
}

// Any request may fail once, or terminally, without the loss of an address, also after an earlier
// process has started.
func TestEachRequestFails(t *testing.T) {
	for _, at := range append(slices.Clone(all), "list load balancers", "list public IPs", "list interfaces", "list scale sets") {
		for _, class := range []armerror.Class{armerror.Retriable, armerror.Terminal} {
			for _, open := range []bool{false, true} {
				w, once := newWorld(), true
				if open {
					w.kept = w.stock()
				}
				w.fails = func(call string) error {
					if call != at || class == armerror.Retriable && !once {
						return nil
					}
					once = false
					return &armerror.Fault{Class: class, Code: "x", Err: errors.New("no")}
				}
				ended := w.run(t)
				if class == armerror.Retriable && (!ended || w.ip.SKU != lb.Standard) || w.ip.Address != first {
					t.Errorf("%s, %s, begun %t: ended %t; it has %s, %s", at, class, open, ended, w.ip.Address, w.ip.SKU)
				}
				if class == armerror.Terminal && at == "put interface n1" && (!ended || w.balancer == nil || !strings.Contains(w.said.String(), "remain Basic until")) {
					t.Error("Azure refuses before anything is taken apart, and nobody else can work")
				}
				if class == armerror.Terminal && at == "put load balancer Standard with 1 frontends" && ended {
					t.Error("it has ended without a load balancer")
				}
			}
		}
	}
}

// A blocked migration is logged, and nothing is written, not even the journal.
func TestSomethingKeepsItFromStarting(t *testing.T) {
	w := newWorld()
	w.balancer.Rules = []lb.Rule{{Name: "ssh"}}
	if !w.run(t) || len(w.writes()) > 0 || !strings.Contains(w.said.String(), "rule ssh of load balancer kubernetes belongs to no served Service") {
		t.Errorf("%q\n%s", w.writes(), w.said.String())
	}
}

// A started migration continues despite new findings.
func TestABegunMigrationGoesOn(t *testing.T) {
	w := newWorld()
	w.kept = w.stock()
	w.balancer, w.ip.Static, w.ip.UsedBy, w.nics, w.services = nil, true, "", nil, nil
	if !w.run(t) || w.ip.UsedBy == "" || w.ip.SKU != lb.Standard {
		t.Errorf("%+v after %q", w.ip, w.calls)
	}
}

// Preflight findings block until a machine has left, as the plan shows.
func TestABegunMigrationIsNotStopped(t *testing.T) {
	for _, apart := range []bool{false, true} {
		w := newWorld()
		w.kept = w.stock()
		w.kept.TrafficStopped = apart
		w.balancer.Rules = []lb.Rule{{Name: "ssh"}}
		plan, err := BuildPlan(t.Context(), w.config())
		if want := map[bool]PlanState{false: PlanBlocked, true: PlanStarted}[apart]; err != nil || plan.State != want {
			t.Errorf("apart %t: the plan is %s, %v, want %s", apart, plan.State, err, want)
		}
		if !w.run(t) || (w.ip.SKU == lb.Standard) != apart || w.ip.Address != first {
			t.Errorf("apart %t: %+v after %q", apart, w.ip, w.calls)
		}
	}
}

// An address known only from a status becomes a claim if Azure rejects it. The Service works
// without it.
func TestAnAddressOfAStatusThatAzureRefuses(t *testing.T) {
	w := newWorld()
	w.balancer = nil
	w.services = []phase.Service{{
		Name: "ns/db", LoadBalancer: place, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
		Frontends: []lb.Frontend{{Name: "a2", Family: lb.IPv4, Subnet: "/subnets/nodes"}},
	}}
	w.fails = func(call string) error {
		if strings.HasPrefix(call, "put load balancer") {
			return refusal("PrivateIPAddressIsAllocated")
		}
		return nil
	}
	if !w.run(t) || w.balancer != nil || !w.kept.Done || !strings.Contains(w.said.String(), "10.0.0.9 (private, frontend a2): Azure refuses it") || !w.kept.HasClaims(phase.UserRequests{}) {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}

// An address that a user removed in the meantime blocks nothing.
func TestAnAddressThatIsGone(t *testing.T) {
	w := newWorld()
	w.fails = func(call string) error {
		if call == "put load balancer Standard with 1 frontends" {
			w.ip.Address = netip.MustParseAddr("198.18.0.2")
		}
		return nil
	}
	if !w.run(t) || !w.kept.Done || !strings.Contains(w.said.String(), "198.18.0.1 (public IP kubernetes-a1, frontend a1): the public IP has the address 198.18.0.2 now") {
		t.Errorf("%q\n%s", w.calls, w.said.String())
	}
}
