// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/humanize"
)

// WriteJSON writes JSON.
func (s Explanation) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// WriteColored is WriteText for a terminal with colors.
func (s Explanation) WriteColored(out io.Writer) error {
	s.isColored = true
	return s.WriteText(out)
}

func (s Explanation) paint(style humanize.Style, text string) string {
	return humanize.PaintText(s.isColored, style, text)
}

// WriteText writes text.
func (s Explanation) WriteText(out io.Writer) error {
	var b strings.Builder
	if s.Service != nil {
		s.writeService(&b)
	}
	if s.Gateway != nil {
		s.writeGateway(&b)
	}
	if s.Node != nil {
		s.writeNode(&b)
	}
	for _, p := range s.Pools {
		s.writePool(&b, p)
	}
	if s.NodesUnseen {
		b.WriteString("\nYou may not list Nodes: only recorded members are shown.\n")
	}
	if s.HealthError != "" {
		b.WriteString("\nAzure's probes: " + sanitizeText(s.HealthError) + "\n")
	}
	s.writeEvents(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (s Explanation) writeService(b *strings.Builder) {
	v := s.Service
	fmt.Fprintf(b, "%s: %s", s.paint(humanize.Title, "Service "+v.Namespace+"/"+sanitizeText(v.Name)), sanitizeText(v.Type))
	if v.Policy != "" {
		fmt.Fprintf(b, ", externalTrafficPolicy %s", sanitizeText(v.Policy))
	}
	b.WriteString("\n")
	if v.isLoadBalancer() {
		writeLine(b, "Class", sanitizeText(v.classLine()))
		writeLine(b, "Addresses", joinOrDefault(v.Addresses, "none yet"))
		writeLine(b, "Load balancers", joinOrDefault(v.LoadBalancers, "none"))
	} else {
		writeLine(b, "Class", "none: a Service of type "+sanitizeText(v.Type)+" gets no load balancer, and a BackendPool may use its node ports")
	}
	s.writeConditions(b, v.Conditions, v.Steps)
	if v.Next != "" {
		writeLine(b, "Next", v.Next)
	}
	if len(s.Pools) == 0 {
		writeLine(b, "BackendPools", "none")
	}
	v.writePorts(b)
}

// writeConditions writes conditions, and what to do below the problem that it is for.
func (s Explanation) writeConditions(b *strings.Builder, conditions []metav1.Condition, steps []Step) {
	steps = distinctSteps(steps)
	for _, c := range conditions {
		at := slices.IndexFunc(steps, func(step Step) bool { return step.Why == c.Message })
		state := fmt.Sprintf("%s for %s, %s", c.Status, s.formatAge(c.LastTransitionTime.Time), sanitizeText(c.Reason)) // the time is that of the status
		if at >= 0 {
			state = s.paint(humanize.Bad, state)
		}
		writeLine(b, sanitizeText(c.Type), strings.TrimSuffix(fmt.Sprintf("%s: %s", state, sanitizeText(c.Message)), ": "))
		if at >= 0 {
			s.writeStep(b, steps[at])
			steps = slices.Delete(steps, at, at+1)
		}
	}
	for _, step := range steps {
		writeLine(b, s.paint(humanize.Bad, sanitizeText(step.Cause)), sanitizeText(step.Why))
		s.writeStep(b, step)
	}
}

func (s Explanation) writeStep(b *strings.Builder, step Step) {
	if step.Do != "" {
		writeLine(b, s.paint(humanize.Title, "What to do"), step.Do)
	}
}

func (v *Service) writePorts(b *strings.Builder) {
	if len(v.Ports) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  PORT\tNODE PORT\tRULE\n")
	for _, p := range v.Ports {
		rule, nodePort := joinOrDefault(p.Rules, "none"), "-"
		if len(p.Rules) > 0 && !v.IsProgrammed {
			rule += " (wanted; Azure may not have it)"
		}
		if p.Error != "" {
			rule = "none: " + sanitizeText(p.Error)
		}
		if p.NodePort != 0 {
			nodePort = strconv.Itoa(int(p.NodePort))
		}
		fmt.Fprintf(w, "  %d/%s\t%s\t%s\n", p.Port, sanitizeText(p.Protocol), nodePort, rule)
	}
	w.Flush()
}

func (s Explanation) writeNode(b *strings.Builder) {
	n := s.Node
	b.WriteString(s.paint(humanize.Title, "Node "+sanitizeText(n.Name)) + "\n")
	writeLine(b, "Addresses", joinOrDefault(n.Addresses, "none that a load balancer reaches"))
	switch {
	case n.Excluded != "" && len(s.Pools) > 0:
		writeLine(b, "Excluded", n.Excluded+". Until it has left them, it is in the pools below")
	case n.Excluded != "":
		writeLine(b, "Left out of every pool", n.Excluded)
	}
	for _, text := range n.Duplicates {
		writeLine(b, "Duplicate address", sanitizeText(text))
	}
	if len(n.Taints) > 0 {
		writeLine(b, "Taints", sanitizeText(strings.Join(n.Taints, ", ")))
	}
	if len(s.Pools) == 0 {
		writeLine(b, "BackendPools", valueOrDash(n.Poolless))
	}
}

func (s Explanation) writePool(b *strings.Builder, p Pool) {
	fmt.Fprintf(b, "\n%s: %s for %s\n", s.paint(humanize.Title, "BackendPool "+p.Namespace+"/"+sanitizeText(p.Name)), s.paint(p.stateStyle(), sanitizeText(p.State)), s.formatPoolAge(p))
	writeLine(b, "Pool", fmt.Sprintf("%s of load balancer %s", p.Pool, p.LoadBalancer))
	if s.Node == nil {
		writeLine(b, "Members", formatCounts(p))
		writeLine(b, "Why", sanitizeText(p.Why))
		if p.Next != "" {
			writeLine(b, "Next", sanitizeText(p.Next))
		}
		if do := p.remedy(); do != "" {
			writeLine(b, s.paint(humanize.Title, "What to do"), do)
		}
	}
	if len(p.Members) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	health := ""
	if p.HasHealth {
		health = "\tAZURE'S PROBE"
	}
	fmt.Fprintf(w, "  NODE\tADDRESS\tSTATE%s\n", health)
	for _, m := range p.Members {
		state := s.paint(m.style(), m.Is)
		if m.Why != "" {
			state += ": " + sanitizeText(m.Why)
		}
		if p.HasHealth {
			state += "\t" + valueOrDash(sanitizeText(m.Health))
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", valueOrDash(m.Node), valueOrDash(m.Address), state)
	}
	w.Flush()
	if p.Unnamed > 0 {
		fmt.Fprintf(b, "  %d more are missing, surplus or foreign: the status names 50 of each\n", p.Unnamed)
	}
}

// stateStyle colors a pool by whether it is in sync, and whether there is a remedy.
func (p Pool) stateStyle() humanize.Style {
	switch {
	case p.State == v1alpha1.ReasonInSync:
		return humanize.Good
	case p.remedy() != "" && !p.InProgress:
		return humanize.Bad
	}
	return humanize.Warn
}

func (p Pool) remedy() string {
	return status.RemedyOf(p.Cause, status.Problem{Kind: "BackendPool", Namespace: p.Namespace, Name: p.Name, Service: p.service, Why: p.Why})
}

func (m Member) style() humanize.Style {
	switch m.Is {
	case InPool:
		return humanize.Good
	case Missing:
		return humanize.Bad
	case Foreign:
		return ""
	}
	return humanize.Warn
}

func formatCounts(p Pool) string {
	if p.Desired == nil || p.Observed == nil {
		return "not known yet"
	}
	text := fmt.Sprintf("%d are wanted, Azure showed %d", *p.Desired, *p.Observed)
	if p.Pause != nil {
		text = fmt.Sprintf("before the pause %d were wanted, and Azure showed %d", *p.Desired, *p.Observed)
	}
	if n := ptr.Deref(p.Foreign, 0); n > 0 {
		text += fmt.Sprintf(", %d of them not managed by Weir", n)
	}
	return text
}

func (s Explanation) writeEvents(b *strings.Builder) {
	if len(s.Events) == 0 {
		b.WriteString("\nWhat happened: no events\n")
		return
	}
	b.WriteString("\nWhat happened, in UTC:\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for _, e := range s.Events {
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		fmt.Fprintf(w, "  %s\t%s %s\t%s: %s%s\n", e.At.UTC().Format(time.RFC3339), strings.ToLower(e.Kind), sanitizeText(e.Name), sanitizeText(e.Reason), sanitizeText(e.Message), times)
	}
	w.Flush()
}

// formatPoolAge formats how long, or how long at most, a pool has had its state.
func (s Explanation) formatPoolAge(p Pool) string {
	if !p.NotBefore.IsZero() {
		return "up to " + s.formatAge(p.NotBefore)
	}
	return s.formatAge(p.Since)
}

func (s Explanation) formatAge(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return duration.HumanDuration(max(0, s.At.Sub(t)))
}

func writeLine(b *strings.Builder, label, value string) { fmt.Fprintf(b, "  %s: %s\n", label, value) }

func joinOrDefault(of []string, none string) string {
	if len(of) == 0 {
		return none
	}
	return sanitizeText(strings.Join(of, ", "))
}

func valueOrDash(text string) string {
	if text == "" {
		return "-"
	}
	return sanitizeText(text)
}

// sanitizeText removes control characters, which could steer the terminal.
func sanitizeText(text string) string { return humanize.FormatMessage(text, humanize.MaxMessage) }
