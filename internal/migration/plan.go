// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/internal/migrate"
)

// State is the state of a plan.
type State string

// The states.
const (
	Nothing State = "Nothing" // nothing is Basic
	Planned State = "Planned" // starts with the next process
	Stopped State = "Stopped" // blocked by the preflight
	Begun   State = "Begun"   // running, or continues with the next process
)

// Plan is what a migration would do.
type Plan struct {
	State         State             `json:"state"`
	LoadBalancers []PlannedBalancer `json:"loadBalancers"`
	Findings      []PlannedFinding  `json:"findings"`
	Steps         []PlannedStep     `json:"steps"`
	// CutOffSeconds estimates how long Services are unreachable.
	CutOffSeconds int     `json:"cutOffSeconds"`
	WayBack       WayBack `json:"wayBack"`
}

// PlannedBalancer is a load balancer and the addresses it keeps.
type PlannedBalancer struct {
	Name          string            `json:"name"`
	ResourceGroup string            `json:"resourceGroup"`
	Addresses     []migrate.Address `json:"addresses"`
}

// PlannedFinding is a finding of the preflight.
type PlannedFinding struct {
	Reason  string `json:"reason"`
	Stops   bool   `json:"stops"`
	Message string `json:"message"`
}

// PlannedStep has the names of resources written together.
type PlannedStep struct {
	Phase             migrate.Phase `json:"phase"`
	PublicIPs         []string      `json:"publicIPs,omitempty"`
	NetworkInterfaces []string      `json:"networkInterfaces,omitempty"`
	ScaleSets         []string      `json:"scaleSets,omitempty"`
	Instances         []string      `json:"instances,omitempty"`
	Delete            []string      `json:"delete,omitempty"`
	Make              []string      `json:"make,omitempty"`
	Waits             []string      `json:"waits,omitempty"`
	Stops             []string      `json:"stops,omitempty"`
}

// Look returns what a migration would do now. It writes nothing, and needs neither Lease nor Log.
func Look(ctx context.Context, cfg Config) (Plan, error) {
	m := New(cfg)
	stored, _, err := cfg.Store.Read(ctx)
	if err != nil {
		return Plan{}, err
	}
	services := cfg.Services()
	snapshot, err := m.read(ctx, stored, services)
	if err != nil {
		return Plan{}, err
	}
	j := migrate.Stock(stored, snapshot, services, cfg.Location)
	p := Plan{State: Nothing, LoadBalancers: []PlannedBalancer{}, Findings: []PlannedFinding{}, Steps: []PlannedStep{}}
	if !j.Open() {
		return p, nil
	}
	p.State, p.WayBack = Planned, wayBack(j, snapshot)
	for _, b := range j.Balancers {
		p.LoadBalancers = append(p.LoadBalancers, PlannedBalancer{b.ID.Name, b.ID.ResourceGroup, b.Addresses})
	}
	found, err := m.before.preflight(ctx, m.cfg, j, snapshot, services)
	if err != nil {
		return Plan{}, err
	}
	for _, f := range found {
		p.Findings = append(p.Findings, PlannedFinding{f.Reason, f.Stops, f.What})
		if f.Stops {
			p.State = Stopped
		}
	}
	if stored.Open() && (p.State != Stopped || stored.Apart || stored.Gone(snapshot)) {
		p.State = Begun
	}
	steps := migrate.Rehearse(j, snapshot)
	for _, s := range steps {
		p.Steps = append(p.Steps, planned(s))
	}
	p.CutOffSeconds = int(migrate.CutOff(steps) / time.Second)
	return p, nil
}

func planned(s migrate.Steps) PlannedStep {
	p := PlannedStep{Phase: s.Phase, Waits: s.Waits, Stops: s.Stops}
	for _, ip := range s.PublicIPs {
		p.PublicIPs = append(p.PublicIPs, ip.ID.Name)
	}
	for _, i := range s.Interfaces {
		p.NetworkInterfaces = append(p.NetworkInterfaces, i.ID.Name)
	}
	for _, set := range s.ScaleSets {
		if set.Model != nil {
			p.ScaleSets = append(p.ScaleSets, set.ID.Name)
		}
		for _, id := range set.Upgrade {
			p.Instances = append(p.Instances, set.ID.Name+"/"+id)
		}
		for _, i := range set.Write {
			p.Instances = append(p.Instances, set.ID.Name+"/"+i.ID)
		}
	}
	for _, b := range s.Delete {
		p.Delete = append(p.Delete, b.ID.Name)
	}
	for _, b := range s.Put {
		p.Make = append(p.Make, b.ID.Name)
	}
	return p
}

// JSON returns the plan as JSON.
func (p Plan) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}

// Text returns the plan for humans.
func (p Plan) Text() string {
	var b strings.Builder
	if p.State == Nothing {
		return "No load balancer of the cluster is Basic: nothing is to be migrated.\n"
	}
	for _, lb := range p.LoadBalancers {
		fmt.Fprintf(&b, "load balancer %s: %s\n", lb.Name, counted(len(lb.Addresses), "address stays", "addresses stay"))
		for _, a := range lb.Addresses {
			fmt.Fprintf(&b, "  %s\n", a)
		}
	}
	b.WriteString("\n")
	for n, s := range p.Steps {
		fmt.Fprintf(&b, "%d. %s\n", n+1, s.text())
	}
	fmt.Fprintf(&b, "\nServices are not reached for about %s, if Azure takes no longer than in half of what was recorded of it", time.Duration(p.CutOffSeconds)*time.Second)
	b.WriteString(";\nmembers of pools of network interfaces need as long again as they take to leave.\n")
	fmt.Fprintf(&b, "%s\nWhat was Basic has no zones, and gets none.\n", p.WayBack)
	for _, f := range p.Findings {
		word := "note"
		if f.Stops {
			word = "stops it"
		}
		fmt.Fprintf(&b, "\n%s (%s): %s\n", word, f.Reason, f.Message)
	}
	return b.String()
}

func (s PlannedStep) text() string {
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{
		{"public IPs become Static", s.PublicIPs}, {"network interfaces leave", s.NetworkInterfaces}, {"models of scale sets leave", s.ScaleSets},
		{"instances leave", s.Instances}, {"load balancers are deleted", s.Delete}, {"Standard load balancers are made", s.Make},
		{"waits for", s.Waits}, {"stops at", s.Stops},
	} {
		if s.Phase == migrate.Upgrade && part.what == "public IPs become Static" {
			part.what = "public IPs become Standard"
		}
		if s.Phase == migrate.Rejoin {
			part.what = strings.Replace(part.what, " leave", " join again", 1)
		}
		if len(part.names) > 0 {
			parts = append(parts, part.what+": "+strings.Join(part.names, ", "))
		}
	}
	if s.Phase == migrate.Done {
		parts = append(parts, "rules, members and the security group follow from Services")
	}
	return fmt.Sprintf("%-8s %s", s.Phase, strings.Join(parts, "\n            "))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
