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
func (ex Explanation) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(ex)
}

// WriteColored is WriteText for a terminal with colors.
func (ex Explanation) WriteColored(out io.Writer) error {
	ex.isColored = true
	return ex.WriteText(out)
}

func (ex Explanation) paint(style humanize.Style, text string) string {
	return humanize.PaintText(ex.isColored, style, text)
}

// WriteText writes text.
func (ex Explanation) WriteText(out io.Writer) error {
	var b strings.Builder
	if ex.Service != nil {
		ex.writeService(&b)
	}
	if ex.Gateway != nil {
		ex.writeGateway(&b)
	}
	if ex.Node != nil {
		ex.writeNode(&b)
	}
	for _, p := range ex.Pools {
		ex.writePool(&b, p)
	}
	if ex.NodesUnseen {
		b.WriteString("\nYou may not list Nodes: only recorded members are shown.\n")
	}
	if ex.HealthError != "" {
		b.WriteString("\nAzure's probes: " + sanitizeText(ex.HealthError) + "\n")
	}
	ex.writeEvents(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (ex Explanation) writeService(b *strings.Builder) {
	v := ex.Service
	fmt.Fprintf(b, "%s: %s", ex.paint(humanize.Title, "Service "+v.Namespace+"/"+sanitizeText(v.Name)), sanitizeText(v.Type))
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
	ex.writeConditions(b, v.Conditions, v.Steps)
	if v.Next != "" {
		writeLine(b, "Next", v.Next)
	}
	if len(ex.Pools) == 0 {
		writeLine(b, "BackendPools", "none")
	}
	v.writePorts(b)
}

// writeConditions writes conditions, and what to do below the problem that it is for.
func (ex Explanation) writeConditions(b *strings.Builder, conditions []metav1.Condition, steps []Step) {
	steps = distinctSteps(steps)
	for _, c := range conditions {
		at := slices.IndexFunc(steps, func(step Step) bool { return step.Why == c.Message })
		state := fmt.Sprintf("%s for %s, %s", c.Status, ex.formatAge(c.LastTransitionTime.Time), sanitizeText(c.Reason)) // the time is that of the status
		if at >= 0 {
			state = ex.paint(humanize.Bad, state)
		}
		writeLine(b, sanitizeText(c.Type), strings.TrimSuffix(fmt.Sprintf("%s: %s", state, sanitizeText(c.Message)), ": "))
		if at >= 0 {
			ex.writeStep(b, steps[at])
			steps = slices.Delete(steps, at, at+1)
		}
	}
	for _, step := range steps {
		writeLine(b, ex.paint(humanize.Bad, sanitizeText(step.Cause)), sanitizeText(step.Why))
		ex.writeStep(b, step)
	}
}

func (ex Explanation) writeStep(b *strings.Builder, step Step) {
	if step.Fix != "" {
		writeLine(b, ex.paint(humanize.Title, "What to do"), step.Fix)
	}
}

func (svc *Service) writePorts(b *strings.Builder) {
	if len(svc.Ports) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  PORT\tNODE PORT\tRULE\n")
	for _, p := range svc.Ports {
		rule, nodePort := joinOrDefault(p.Rules, "none"), "-"
		if len(p.Rules) > 0 && !svc.IsProgrammed {
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

func (ex Explanation) writeNode(b *strings.Builder) {
	n := ex.Node
	b.WriteString(ex.paint(humanize.Title, "Node "+sanitizeText(n.Name)) + "\n")
	writeLine(b, "Addresses", joinOrDefault(n.Addresses, "none that a load balancer reaches"))
	switch {
	case n.Excluded != "" && len(ex.Pools) > 0:
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
	if len(ex.Pools) == 0 {
		writeLine(b, "BackendPools", valueOrDash(n.Poolless))
	}
}

func (ex Explanation) writePool(b *strings.Builder, p Pool) {
	fmt.Fprintf(b, "\n%s: %s for %s\n", ex.paint(humanize.Title, "BackendPool "+p.Namespace+"/"+sanitizeText(p.Name)), ex.paint(p.stateStyle(), sanitizeText(p.State)), ex.formatPoolAge(p))
	writeLine(b, "Pool", fmt.Sprintf("%s of load balancer %s", p.Pool, p.LoadBalancer))
	if ex.Node == nil {
		writeLine(b, "Members", formatCounts(p))
		writeLine(b, "Why", sanitizeText(p.Why))
		if p.Next != "" {
			writeLine(b, "Next", sanitizeText(p.Next))
		}
		if do := p.remedy(); do != "" {
			writeLine(b, ex.paint(humanize.Title, "What to do"), do)
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
		state := ex.paint(m.style(), m.State)
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
	switch m.State {
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

func (ex Explanation) writeEvents(b *strings.Builder) {
	if len(ex.Events) == 0 {
		b.WriteString("\nWhat happened: no events\n")
		return
	}
	b.WriteString("\nWhat happened, in UTC:\n")
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	for _, e := range ex.Events {
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		fmt.Fprintf(w, "  %s\t%s %s\t%s: %s%s\n", e.At.UTC().Format(time.RFC3339), strings.ToLower(e.Kind), sanitizeText(e.Name), sanitizeText(e.Reason), sanitizeText(e.Message), times)
	}
	w.Flush()
}

// formatPoolAge formats how long, or how long at most, a pool has had its state.
func (ex Explanation) formatPoolAge(p Pool) string {
	if !p.NotBefore.IsZero() {
		return "up to " + ex.formatAge(p.NotBefore)
	}
	return ex.formatAge(p.Since)
}

func (ex Explanation) formatAge(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return duration.HumanDuration(max(0, ex.At.Sub(t)))
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
