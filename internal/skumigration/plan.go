// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/skumigration/phase"
)

// PlanState is the state of a plan.
type PlanState string

// The states.
const (
	PlanEmpty   PlanState = "Nothing" // nothing is Basic
	PlanReady   PlanState = "Planned" // starts with the next process
	PlanBlocked PlanState = "Stopped" // blocked by the preflight
	PlanStarted PlanState = "Begun"   // running, or continues with the next process
)

// Plan is what a migration would do.
type Plan struct {
	State         PlanState          `json:"state"`
	LoadBalancers []PlanLoadBalancer `json:"loadBalancers"`
	Findings      []PlanFinding      `json:"findings"`
	Steps         []PlanStep         `json:"steps"`
	// UnavailableSeconds estimates how long Services are unreachable.
	UnavailableSeconds int      `json:"unavailableSeconds"`
	Undo               UndoInfo `json:"undo"`
}

// PlanLoadBalancer is a load balancer and the addresses it keeps.
type PlanLoadBalancer struct {
	Name          string          `json:"name"`
	ResourceGroup string          `json:"resourceGroup"`
	Addresses     []phase.Address `json:"addresses"`
	// Zones are those of private frontends of Services that name none.
	Zones []string `json:"zones,omitempty"`
}

// PlanFinding is a finding of the preflight.
type PlanFinding struct {
	Reason    string `json:"reason"`
	IsBlocker bool   `json:"blocker"`
	Message   string `json:"message"`
}

// PlanStep has the names of resources written together.
type PlanStep struct {
	Phase             phase.Phase `json:"phase"`
	PublicIPs         []string    `json:"publicIPs,omitempty"`
	NetworkInterfaces []string    `json:"networkInterfaces,omitempty"`
	ScaleSets         []string    `json:"scaleSets,omitempty"`
	Instances         []string    `json:"instances,omitempty"`
	Delete            []string    `json:"delete,omitempty"`
	Create            []string    `json:"create,omitempty"`
	WaitReasons       []string    `json:"waitReasons,omitempty"`
	StopReasons       []string    `json:"stopReasons,omitempty"`
}

// BuildPlan returns what a migration would do now. It writes nothing, and needs neither Lease nor Log.
func BuildPlan(ctx context.Context, cfg Config) (Plan, error) {
	m := New(cfg)
	stored, _, err := cfg.Store.Load(ctx)
	if err != nil {
		return Plan{}, err
	}
	services := cfg.Services()
	snapshot, err := m.readSnapshot(ctx, stored, services)
	if err != nil {
		return Plan{}, err
	}
	j := phase.BuildJournal(stored, snapshot, services, cfg.Location)
	p := Plan{State: PlanEmpty, LoadBalancers: []PlanLoadBalancer{}, Findings: []PlanFinding{}, Steps: []PlanStep{}}
	if !j.IsOpen() {
		return p, nil
	}
	p.State, p.Undo = PlanReady, newUndoInfo(j, snapshot)
	for _, b := range j.LoadBalancers {
		p.LoadBalancers = append(p.LoadBalancers, PlanLoadBalancer{b.ID.Name, b.ID.ResourceGroup, b.Addresses, newZones(b, snapshot)})
	}
	found, err := m.preflight.check(ctx, m.cfg, j, snapshot, services)
	if err != nil {
		return Plan{}, err
	}
	for _, f := range found {
		p.Findings = append(p.Findings, PlanFinding{f.Reason, f.IsBlocker, f.Message})
		if f.IsBlocker {
			p.State = PlanBlocked
		}
	}
	if stored.IsOpen() && (p.State != PlanBlocked || stored.TrafficStopped || stored.HasDeletedLoadBalancer(snapshot)) {
		p.State = PlanStarted
	}
	steps := phase.DryRun(j, snapshot)
	for _, s := range steps {
		p.Steps = append(p.Steps, newPlanStep(s))
	}
	p.UnavailableSeconds = int(phase.UnavailableTime(steps) / time.Second)
	return p, nil
}

// newZones returns the zones of the private frontends of a load balancer; none if it has no such frontend.
func newZones(b phase.LoadBalancer, snapshot phase.Snapshot) []string {
	if slices.ContainsFunc(b.Addresses, func(a phase.Address) bool { return a.PublicIP == "" }) {
		return snapshot.Zones[b.Location].Default
	}
	return nil
}

func newPlanStep(s phase.Steps) PlanStep {
	p := PlanStep{Phase: s.Phase, WaitReasons: s.WaitReasons, StopReasons: s.StopReasons}
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
		p.Create = append(p.Create, b.ID.Name)
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
	if p.State == PlanEmpty {
		return "No load balancer of the cluster is Basic: nothing is to be migrated.\n"
	}
	for _, lb := range p.LoadBalancers {
		fmt.Fprintf(&b, "load balancer %s: %s\n", lb.Name, pluralize(len(lb.Addresses), "address is kept", "addresses are kept"))
		for _, a := range lb.Addresses {
			fmt.Fprintf(&b, "  %s\n", a)
		}
		if len(lb.Zones) > 0 {
			fmt.Fprintf(&b, "  zones of its private frontends: %s\n", strings.Join(lb.Zones, ", "))
		}
	}
	b.WriteString("\n")
	for n, s := range p.Steps {
		fmt.Fprintf(&b, "%d. %s\n", n+1, s.format())
	}
	fmt.Fprintf(&b, "\nServices are unreachable for about %s, at Azure's median recorded speed", time.Duration(p.UnavailableSeconds)*time.Second)
	b.WriteString(";\nmembers of pools of network interfaces need as long again as they take to leave.\n")
	fmt.Fprintf(&b, "%s\nA public IP that was Basic has no zones, and gets none.\n", p.Undo)
	for _, f := range p.Findings {
		word := "note"
		if f.IsBlocker {
			word = "stops it"
		}
		fmt.Fprintf(&b, "\n%s (%s): %s\n", word, f.Reason, f.Message)
	}
	return b.String()
}

func (s PlanStep) format() string {
	var parts []string
	for _, part := range []struct {
		text  string
		names []string
	}{
		{"public IPs become Static", s.PublicIPs}, {"network interfaces leave", s.NetworkInterfaces}, {"models of scale sets leave", s.ScaleSets},
		{"instances leave", s.Instances}, {"load balancers are deleted", s.Delete}, {"Standard load balancers are made", s.Create},
		{"waits for", s.WaitReasons}, {"stops at", s.StopReasons},
	} {
		if s.Phase == phase.PhaseUpgrade && part.text == "public IPs become Static" {
			part.text = "public IPs become Standard"
		}
		if s.Phase == phase.PhaseReattach {
			part.text = strings.Replace(part.text, " leave", " join again", 1)
		}
		if len(part.names) > 0 {
			parts = append(parts, part.text+": "+strings.Join(part.names, ", "))
		}
	}
	if s.Phase == phase.PhaseDone {
		parts = append(parts, "rules, members and the security group follow from Services")
	}
	return fmt.Sprintf("%-8s %s", s.Phase, strings.Join(parts, "\n            "))
}

func pluralize(n int, singular, many string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprint(n, " ", many)
}
