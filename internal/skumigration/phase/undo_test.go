// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// scattered moves some machines to single pools.
func (c *cluster) scattered(t *rapid.T) {
	some := func(about string, interfaces []lb.InterfaceConfiguration) {
		for i := range interfaces {
			ips := slices.Clone(interfaces[i].IPConfigurations)
			for n := range ips {
				ips[n].Pools = slices.DeleteFunc(slices.Clone(ips[n].Pools), func(id string) bool {
					return strings.HasSuffix(id, "/kubernetes") && rapid.IntRange(0, 3).Draw(t, about+" is in no such pool") == 0
				})
			}
			interfaces[i].IPConfigurations = ips
		}
	}
	for i := range c.model.seen.Interfaces {
		of := []lb.InterfaceConfiguration{c.model.seen.Interfaces[i].InterfaceConfiguration}
		some("interface", of)
		c.model.seen.Interfaces[i].InterfaceConfiguration = of[0]
	}
	for i := range c.model.seen.ScaleSets {
		some("model", c.model.seen.ScaleSets[i].Interfaces)
		for n := range c.model.seen.ScaleSets[i].Instances {
			some("instance", c.model.seen.ScaleSets[i].Instances[n].Interfaces)
		}
	}
}

// memberships returns the pools of each machine and model.
func (c *cluster) memberships() map[string]string {
	memberships := map[string]string{}
	add := func(about string, interfaces ...lb.InterfaceConfiguration) {
		for _, i := range interfaces {
			for _, ip := range i.IPConfigurations {
				memberships[about+"/"+ip.Name] = strings.ToLower(strings.Join(slices.Sorted(slices.Values(ip.Pools)), " "))
			}
		}
	}
	for _, i := range c.model.seen.Interfaces {
		add(i.ID.Name, i.InterfaceConfiguration)
	}
	for _, s := range c.model.seen.ScaleSets {
		add(s.ID.Name, s.Interfaces...)
		for _, i := range s.Instances {
			add(s.ID.Name+"/"+i.ID, i.Interfaces...)
		}
	}
	return memberships
}

// kept returns the journal as the next process reads it.
func kept(t *rapid.T, j phase.Journal) phase.Journal {
	second, err := phase.ParseJournal(phase.FormatJournal(j))
	if err != nil {
		t.Fatal(err)
	}
	return second
}

// some sends some of the requests in any order; the others fail or are never sent.
func (c *cluster) some(t *rapid.T, s phase.Steps) {
	for _, write := range rapid.Permutation(c.model.writes(s)).Draw(t, "order") {
		if rapid.IntRange(0, 3).Draw(t, "failed") == 0 {
			continue
		}
		if err := write(); err != nil {
			t.Fatalf("%s: Azure refuses: %v", s.Phase, err)
		}
	}
}

// begun runs some rounds of a migration, stopping before one that can't be undone.
func (c *cluster) begun(t *rapid.T) phase.Journal {
	var j phase.Journal
	for range rapid.IntRange(1, 8).Draw(t, "rounds") {
		j = phase.BuildJournal(kept(t, j), c.model.shown(), c.services, "eastus")
		s := phase.NextSteps(j, c.model.shown())
		next := j.PrepareFor(s, c.model.shown())
		if next.FinalReason != "" || s.Phase == phase.PhaseDone {
			break
		}
		j = next
		c.some(t, s)
		j.TrafficStopped = j.TrafficStopped || s.Phase == phase.PhaseDetach && rapid.Bool().Draw(t, "apart is on record")
	}
	return j
}

// undone runs the undo, with failures.
func (c *cluster) undone(t *rapid.T, j phase.Journal) {
	for range 200 {
		s := phase.NextUndoSteps(kept(t, j), c.model.shown())
		if len(s.StopReasons) > 0 || s.Phase == phase.PhaseUndone {
			if s.Phase != phase.PhaseUndone || len(s.StopReasons) > 0 {
				t.Fatalf("%s: %q", s.Phase, s.StopReasons)
			}
			return
		}
		if len(c.model.writes(s)) == 0 {
			t.Fatalf("it waits for %q, and nobody is at work", s.WaitReasons)
		}
		c.some(t, s)
	}
	t.Fatal("it has no end")
}

// If a migration is undone before the first load balancer is deleted, each machine and address is
// restored, and another migration ends as the first would have.
func TestEveryMembershipComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		c.scattered(t)
		original := c.addresses()
		if rapid.Bool().Draw(t, "somebody has begun by hand") {
			c.byHand(t) // changes before Weir started are not undone
		}
		were, addresses, balancers := c.memberships(), c.addresses(), fmt.Sprintf("%+v", c.model.seen.LoadBalancers)
		for range rapid.IntRange(1, 2).Draw(t, "times") {
			j := c.begun(t)
			if reason := j.NoUndoReason(); reason != "" && j.IsOpen() {
				t.Fatalf("no load balancer is deleted, and there is no way back: %s", reason)
			}
			if !j.IsOpen() {
				return
			}
			c.undone(t, j)
			if are := c.memberships(); !maps.Equal(are, were) {
				t.Fatalf("machines were in\n%v\nand are in\n%v", were, are)
			}
			if are := c.addresses(); !maps.Equal(are, addresses) {
				t.Fatalf("addresses were\n%v\nand are\n%v", addresses, are)
			}
			if are := fmt.Sprintf("%+v", c.model.seen.LoadBalancers); are != balancers {
				t.Fatalf("load balancers were\n%s\nand are\n%s", balancers, are)
			}
		}
		c.migrated(t)
		if are := c.addresses(); !maps.Equal(are, original) {
			t.Errorf("addresses were\n%v\nand are\n%v", original, are)
		}
	})
}

// began returns the journal and Azure of a small cluster whose machines have all left.
func began(t *testing.T) (phase.Journal, *model) {
	t.Helper()
	seen, services := small()
	m := &model{seen: seen}
	m.seen.ScaleSets[0].Instances = []lb.Instance{{ScaleSet: m.seen.ScaleSets[0].ID, ID: "0", Interfaces: m.seen.ScaleSets[0].Interfaces}}
	j := phase.BuildJournal(phase.Journal{}, m.shown(), services, "eastus")
	for range 20 {
		s := phase.NextSteps(j, m.shown())
		if s.Phase == phase.PhaseDelete {
			return j, m
		}
		j = j.PrepareFor(s, m.shown())
		j.TrafficStopped = j.TrafficStopped || s.Phase == phase.PhaseDetach
		for _, write := range m.writes(s) {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("no machine has left")
	return j, m
}

func TestIrreversibleSteps(t *testing.T) {
	for _, tt := range []struct {
		about    string
		changed  func(*phase.Journal, *phase.Snapshot)
		phase    phase.Phase
		wantText string
	}{
		{"nothing", func(*phase.Journal, *phase.Snapshot) {}, phase.PhaseReattach, ""},
		{"a load balancer is about to go", func(j *phase.Journal, s *phase.Snapshot) { *j = j.PrepareFor(phase.NextSteps(*j, *s), *s) }, phase.PhaseReattach, "Basic load balancers are deleted, or about to be"},
		{"it has ended", func(j *phase.Journal, _ *phase.Snapshot) { j.Done = true }, phase.PhaseReattach, "it has come to its end"},
		{"it was taken back", func(j *phase.Journal, _ *phase.Snapshot) { j.CompletedUndo = &phase.UserRequest{} }, phase.PhaseReattach, "none is under way"},
		{"somebody has deleted the load balancer", func(_ *phase.Journal, s *phase.Snapshot) { s.LoadBalancers = nil }, phase.PhaseReattach, "another client has deleted or recreated one of its load balancers"},
		{"an earlier Weir has not written down where machines were", func(j *phase.Journal, _ *phase.Snapshot) { j.Members = nil }, phase.PhaseReattach, "machines have left before"},
		{"the same, before one has left", func(j *phase.Journal, _ *phase.Snapshot) { j.Members, j.TrafficStopped = nil, false }, phase.PhaseUndone, ""},
		{"all machines are gone", func(_ *phase.Journal, s *phase.Snapshot) { s.Interfaces, s.ScaleSets = nil, nil }, phase.PhaseUndone, "network interface n1 is gone; scale set blue is gone"},
		{"a machine has no such address any more", func(_ *phase.Journal, s *phase.Snapshot) {
			s.ScaleSets, s.Interfaces[0].IPConfigurations = nil, nil
		}, phase.PhaseUndone, "network interface n1 has no IP configuration ip any more; scale set blue is gone"},
	} {
		j, m := began(t)
		seen := m.shown()
		tt.changed(&j, &seen)
		s := phase.NextUndoSteps(j, seen)
		if want := strings.Join(s.StopReasons, "; "); s.Phase != tt.phase || !strings.Contains(want, tt.wantText) || (want == "") != (tt.wantText == "") {
			t.Errorf("%s: %s, %q, want %s, %q", tt.about, s.Phase, want, tt.phase, tt.wantText)
		}
	}
}

// Resources that Azure is updating are waited for, and a failed write is repeated.
func TestTakingBackWaitsForAzure(t *testing.T) {
	for _, tt := range []struct {
		about   string
		changed func(*phase.Snapshot)
		waits   string
	}{
		{"a network interface", func(s *phase.Snapshot) { s.Interfaces[0].Provisioning = lb.Updating }, "network interface n1 is Updating"},
		{"a scale set", func(s *phase.Snapshot) { s.ScaleSets[0].Provisioning = lb.Updating }, "scale set blue is Updating"},
	} {
		j, m := began(t)
		seen := m.shown()
		tt.changed(&seen)
		if s := phase.NextUndoSteps(j, seen); !slices.Equal(s.WaitReasons, []string{tt.waits}) || len(s.Interfaces)+len(s.ScaleSets) != 1 {
			t.Errorf("%s: %q, %d and %d are written", tt.about, s.WaitReasons, len(s.Interfaces), len(s.ScaleSets))
		}
	}
	j, m := began(t)
	for range 5 {
		for _, write := range m.writes(phase.NextUndoSteps(j, m.shown())) {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := phase.NextUndoSteps(j, m.shown()); s.Phase != phase.PhaseUndone {
		t.Fatalf("%s", s.Phase)
	}
	m.seen.Interfaces[0].Provisioning = lb.Failed
	if s := phase.NextUndoSteps(j, m.shown()); len(s.Interfaces) != 1 {
		t.Errorf("what a failed write shows is taken for what holds")
	}
}

// Instances are restored according to the upgrade policy.
func TestInstancesComeBack(t *testing.T) {
	for _, tt := range []struct {
		about   string
		changed func(*phase.ScaleSet)
		want    string
	}{
		{"nobody upgrades it", func(*phase.ScaleSet) {}, "write 0"},
		{"nothing but our own write is new to it", func(s *phase.ScaleSet) { s.Known.UpToDate = map[string]bool{"0": true} }, "upgrade 0"},
		{"it is protected", func(s *phase.ScaleSet) {
			s.Known.UpToDate, s.Instances[0].Protected = map[string]bool{"0": true}, true
		}, "write 0"},
		{"Azure upgrades it", func(s *phase.ScaleSet) { s.UpgradeMode = lb.UpgradeRolling }, "waits"},
		{"Azure has had its time", func(s *phase.ScaleSet) {
			s.UpgradeMode, s.Known.UpgradeTimedOut = lb.UpgradeRolling, map[string]bool{"0": true}
		}, "write 0"},
		{"Azure has upgraded it, and it is out", func(s *phase.ScaleSet) { s.UpgradeMode, s.Instances[0].LatestModel = lb.UpgradeRolling, true }, "write 0"},
		{"it is in, and its last write has failed", func(s *phase.ScaleSet) {
			s.Instances[0].Interfaces, s.Instances[0].Provisioning = s.Interfaces, lb.Failed
		}, "write 0"},
		{"it is in", func(s *phase.ScaleSet) { s.Instances[0].Interfaces = s.Interfaces }, ""},
		{"Azure is at work on it", func(s *phase.ScaleSet) { s.Instances[0].Provisioning = "Deallocating" }, "waits"},
		{"it is going", func(s *phase.ScaleSet) { s.Instances[0].Provisioning = lb.Deleting }, ""},
		{"it is new", func(s *phase.ScaleSet) { s.Instances[0].ID = "7" }, "write 7"},
	} {
		j, m := began(t)
		s := phase.NextUndoSteps(j, m.shown())
		for _, write := range m.writes(s) { // the model and the interface
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
		seen := m.shown()
		set := &seen.ScaleSets[0]
		set.UpgradeMode = lb.UpgradeManual
		set.Instances[0].LatestModel = false
		set.Instances[0].Interfaces = []lb.InterfaceConfiguration{{Name: "nic", IPConfigurations: []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true}}}}
		tt.changed(set)
		s, got := phase.NextUndoSteps(j, seen), ""
		for _, of := range s.ScaleSets {
			for _, id := range of.Upgrade {
				got += "upgrade " + id
			}
			for _, i := range of.Write {
				got += "write " + i.ID
			}
		}
		if len(s.WaitReasons) > 0 {
			got += "waits"
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.about, got, tt.want)
		}
	}
}

// Thousands of machines fit. A larger record makes the migration final, which is known before a
// machine leaves.
func TestRecordedMembersAreBounded(t *testing.T) {
	for n, fits := range map[int]bool{5000: true, 20000: false} {
		seen, services := small()
		nic := seen.Interfaces[0]
		seen.ScaleSets, seen.Interfaces = nil, nil
		for i := range n {
			nic.ID.Name = fmt.Sprintf("aks-nodepool1-12345678-vmss-nic-%06d", i)
			seen.Interfaces = append(seen.Interfaces, nic)
		}
		seen.PublicIPs[0].Static = true
		j := phase.BuildJournal(phase.Journal{}, seen, services, "eastus")
		before := len(phase.FormatJournal(j))
		j = j.PrepareFor(phase.NextSteps(j, seen), seen)
		grown := len(phase.FormatJournal(j)) - before
		if (j.Members != nil) != fits || (j.NoUndoReason() == "") != fits || grown > 256<<10+100 {
			t.Errorf("%d machines are kept in %d KiB: %t, %s", n, grown>>10, j.Members != nil, j.NoUndoReason())
		}
	}
}

// The journal becomes part of requests: references to other load balancers are rejected.
func TestForbiddenMembers(t *testing.T) {
	j, _ := began(t)
	good := phase.FormatJournal(j)
	if _, err := phase.ParseJournal(good); err != nil || j.Members == nil {
		t.Fatalf("%v:\n%s", err, good)
	}
	for _, tt := range []struct{ before, want string }{
		{"loadBalancers/kubernetes/backendAddressPools/kubernetes", "loadBalancers/another/backendAddressPools/kubernetes"},
		{`"names":["n1"]`, `"names":["n1/../x"]`},
		{`"pools":{"ip":[0]}`, `"pools":{"ip":[1]}`},
		{`"model":{"nic/ip":[0]}`, `"model":{"nic/ip":[-1]}`},
		{"Microsoft.Compute/virtualMachineScaleSets", "Microsoft.Compute/virtualMachines"},
		{`"Name":"blue"`, `"Name":"../blue"`},
	} {
		bad := strings.Replace(good, tt.before, tt.want, 1)
		if _, err := phase.ParseJournal(bad); err == nil || bad == good {
			t.Errorf("%s is read:\n%s", tt.want, bad)
		}
	}
}

// The first record of a machine wins, and without a record from before machines left, the migration
// is final.
func TestTheFirstLookCounts(t *testing.T) {
	seen, services := small()
	second := seen.LoadBalancers[0]
	second.ID, second.Frontends, second.Rules = balancerID("kubernetes-internal"), nil, nil
	seen.LoadBalancers = append(seen.LoadBalancers, second)
	seen.ScaleSets, seen.PublicIPs[0].Static = nil, true
	of := func(pools ...string) []lb.NetworkInterface {
		i := seen.Interfaces[0]
		i.IPConfigurations = []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true, Pools: pools}}
		return []lb.NetworkInterface{i}
	}
	single, two := seen.LoadBalancers[0].ID.String()+"/backendAddressPools/kubernetes", second.ID.String()+"/backendAddressPools/kubernetes"
	j := phase.BuildJournal(phase.Journal{}, seen, services, "eastus")
	seen.Interfaces = of(single, two)
	j = j.PrepareFor(phase.NextSteps(j, seen), seen)
	seen.Interfaces = of(single)
	j = j.PrepareFor(phase.NextSteps(j, seen), seen)
	seen.Interfaces = of()
	s := phase.NextUndoSteps(j, seen)
	if len(s.Interfaces) != 1 || !slices.Equal(s.Interfaces[0].IPConfigurations[0].Pools, []string{single, two}) {
		t.Errorf("%+v", s.Interfaces)
	}
	j.TrafficStopped, j.Members = true, nil
	if j = j.PrepareFor(phase.NextSteps(j, seen), seen); j.Members != nil || j.NoUndoReason() == "" {
		t.Errorf("%+v", j.Members)
	}
}

// A repeated request counts once, a stop becomes an undo, and an impossible undo is rejected.
func TestAskingToTakeItBack(t *testing.T) {
	j, m := began(t)
	first, err := phase.UserRequests{Run: &phase.UserRequest{By: "joe"}}.RequestUndo(j, phase.UserRequest{By: "jane"})
	if err != nil || first.Stop == nil || first.Stop.By != "jane" || !first.Stop.Undo || first.Run == nil {
		t.Fatalf("%+v, %v", first.Stop, err)
	}
	if second, err := first.RequestUndo(j, phase.UserRequest{By: "joe"}); err != nil || second.Stop.By != "jane" {
		t.Errorf("asked twice: %+v, %v", second.Stop, err)
	}
	stopped := phase.UserRequests{Stop: &phase.UserRequest{By: "joe"}}
	if current, err := stopped.RequestUndo(j, phase.UserRequest{By: "jane"}); err != nil || current.Stop.By != "jane" || !current.Stop.Undo || stopped.Stop.Undo {
		t.Errorf("it was stopped: %+v, %v", current.Stop, err)
	}
	for _, tt := range []struct {
		j        phase.Journal
		wantText string
	}{
		{j.PrepareFor(phase.NextSteps(j, m.shown()), m.shown()), "the migration cannot be undone: Basic load balancers are deleted, or about to be"},
		{phase.Journal{}, "nothing is to be taken back: none is under way"},
	} {
		if current, err := stopped.RequestUndo(tt.j, phase.UserRequest{}); err == nil || !strings.Contains(err.Error(), tt.wantText) || *current.Stop != *stopped.Stop {
			t.Errorf("%s: %+v, %v", tt.wantText, current.Stop, err)
		}
	}
}

// The journal tells until when a migration can be undone.
func TestRollbackDeadline(t *testing.T) {
	for _, tt := range []struct {
		about   string
		changed func(*phase.Journal, *phase.Snapshot)
		want    phase.Phase
	}{
		{"a load balancer is there", func(*phase.Journal, *phase.Snapshot) {}, phase.PhaseDelete},
		{"somebody deleted all before it began", func(j *phase.Journal, s *phase.Snapshot) {
			s.LoadBalancers = nil
			for at := range j.LoadBalancers {
				for a := range j.LoadBalancers[at].Addresses {
					j.LoadBalancers[at].Addresses[a].StatusOnly = true
				}
			}
		}, phase.PhaseUpgrade},
		{"it has ended", func(j *phase.Journal, _ *phase.Snapshot) { j.Done = true }, ""},
	} {
		j, m := began(t)
		seen := m.shown()
		tt.changed(&j, &seen)
		if until, reason := j.UndoLimit(seen); until != tt.want {
			t.Errorf("%s: until %q (%s), want %q", tt.about, until, reason, tt.want)
		}
	}
}
