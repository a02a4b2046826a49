// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"weir.dev/weir/internal/humanize"
)

// maxObjects limits the printed objects per cause; -o json has all.
const maxObjects = 10

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteColored is WriteText for a terminal with colors.
func (r Report) WriteColored(out io.Writer) error {
	r.isColored = true
	return r.WriteText(out)
}

func (r Report) paint(s humanize.Style, text string) string {
	return humanize.PaintText(r.isColored, s, text)
}

// summaryStyle is the style of the summary: what is wrong, or needs time, is seen first.
func (r Report) summaryStyle() humanize.Style {
	switch {
	case !r.InSync:
		return humanize.Bad
	case len(r.Waiting) > 0 || len(r.Paused) > 0:
		return humanize.Warn
	}
	return humanize.Good
}

// WriteText writes the summary, then the problems.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	b.WriteString(r.paint(r.summaryStyle(), r.Summary()))
	if !r.InSync || len(r.Waiting) > 0 || len(r.Paused) > 0 { // messages contain times
		b.WriteString(" It is " + r.At.UTC().Format(time.RFC3339) + ".")
	}
	b.WriteString("\n")
	if c, found := r.MainCause(); found {
		fmt.Fprintf(&b, "%s %s (%d of %d).\n", r.paint(humanize.Title, "Fix first:"), sanitizeText(c.Name), len(c.Objects), r.countProblems())
	}
	for _, c := range r.Causes {
		r.writeCause(&b, c, humanize.Bad)
	}
	r.writeWaiting(&b)
	r.writePaused(&b)
	if len(r.Notes) > 0 {
		b.WriteString("\nNotes:\n")
	}
	for _, c := range r.Notes {
		r.writeCause(&b, c, humanize.Title)
	}
	if r.Health != nil {
		b.WriteString("\nAzure's probes: " + sanitizeText(r.Health.text()) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// MainCause returns the first cause, if there are several and it has a fix.
func (r Report) MainCause() (c Cause, found bool) {
	if len(r.Causes) < 2 || hasFix(r.Causes[0]) != 0 {
		return Cause{}, false
	}
	return r.Causes[0], true
}

func (r Report) countProblems() (n int) {
	for _, c := range r.Causes {
		n += len(c.Objects)
	}
	return n
}

// Summary summarizes the report and the leader in a few sentences.
func (r Report) Summary() string { return r.ObjectsText() + " " + r.LeaderText() }

// ObjectsText summarizes the state of all objects.
func (r Report) ObjectsText() string {
	counts := humanize.FormatCount(r.Pools.All, "BackendPool") + ", " + humanize.FormatCount(r.Services.All, "Service")
	if r.Gateways.All > 0 {
		counts += ", " + humanize.FormatCount(r.Gateways.All, "Gateway")
	}
	if r.Provisions.All > 0 {
		counts += ", " + humanize.FormatCount(r.Provisions.All, "Provision")
	}
	if r.Namespace != "" {
		counts += " in namespace " + sanitizeText(r.Namespace)
	}
	text := "In sync: " + counts + "."
	switch {
	case !r.InSync:
		text = "Something is wrong" + r.problemText() + "."
	case len(r.Waiting) > 0 || len(r.Paused) > 0:
		text = "Nothing is wrong: " + counts + "."
	}
	if on := r.pendingText(); on != "" {
		text += " " + on + "."
	}
	if n := len(r.Paused); n > 0 {
		text += fmt.Sprintf(" Paused: %d.", n)
	}
	if r.GatewaysUnseen {
		text += " Gateways are unknown: you may not list them and their routes."
	}
	return text
}

// LeaderText describes which process leads.
func (r Report) LeaderText() string {
	switch {
	case !r.Leader.Known:
		return "The leader is unknown: you may not list Leases."
	case r.HasNoLeader():
		return "No process of Weir leads."
	case r.Leader.Holder == "":
		return fmt.Sprintf("It is unknown whether Weir runs: there is no Lease %s. Weir is not installed, or runs with --leader-elect=false.", LeaseName)
	}
	return sanitizeText(r.Leader.Holder) + " leads."
}

// HasNoLeader reports whether no process of Weir leads.
func (r Report) HasNoLeader() bool {
	return r.Leader.Known && (r.Leader.hasNoHolder() || r.hasCause(NoLeader))
}

func (r Report) hasCause(name string) bool {
	return slices.ContainsFunc(r.Causes, func(c Cause) bool { return c.Name == name })
}

func (r Report) pendingText() string {
	var of []string
	if n := r.Pools.UnderWay; n > 0 {
		of = append(of, humanize.FormatCount(n, "BackendPool"))
	}
	if n := r.Services.UnderWay; n > 0 {
		of = append(of, humanize.FormatCount(n, "Service"))
	}
	if n := r.Gateways.UnderWay; n > 0 {
		of = append(of, humanize.FormatCount(n, "Gateway"))
	}
	switch text := strings.Join(of, " and "); {
	case text == "":
		return ""
	case r.Leader.hasNoHolder():
		return "Waiting for a leader: " + text
	default:
		return "In progress: " + text
	}
}

func (r Report) problemText() string {
	var of []string
	for _, c := range []struct {
		Count
		kind string
	}{{r.Pools, "BackendPool"}, {r.Services, "Service"}, {r.Gateways, "Gateway"}, {r.Provisions, "Provision"}} {
		if c.Wrong > 0 {
			of = append(of, fmt.Sprintf("%d of %s", c.Wrong, humanize.FormatCount(c.All, c.kind)))
		}
	}
	in := ""
	if r.Namespace != "" {
		in = " in namespace " + sanitizeText(r.Namespace)
	}
	if len(of) == 0 {
		return in
	}
	last := len(of) - 1
	return " with " + strings.Join(append([]string{strings.Join(of[:max(1, last)], ", ")}, of[max(1, last):]...), " and ") + in
}

func (r Report) writeCause(b *strings.Builder, c Cause, style humanize.Style) {
	eachWhy := c.needsEachMessage()
	reason := " " + sanitizeText(c.Objects[0].Why)
	if eachWhy {
		reason = ""
	}
	fmt.Fprintf(b, "\n%s%s\n", r.paint(style, sanitizeText(c.Name)+":"), reason)
	if c.Fix != "" {
		fmt.Fprintf(b, "  %s %s\n", r.paint(humanize.Title, "What to do:"), c.Fix)
	}
	if c.Name == NoLeader || c.Name == TwoLeaders || c.Name == NoProvisioner { // the Lease itself adds nothing
		return
	}
	r.writeObjects(b, c.Objects, eachWhy)
}

// needsEachMessage reports whether each object's message has a fix of its own.
func (c Cause) needsEachMessage() bool {
	return (c.Fix == "" || strings.Contains(c.Fix, "message")) &&
		slices.ContainsFunc(c.Objects, func(p Problem) bool { return p.Why != c.Objects[0].Why })
}

// writeWaiting prints objects in progress, unless they only wait for a leader.
func (r Report) writeWaiting(b *strings.Builder) {
	if len(r.Waiting) == 0 || r.Leader.hasNoHolder() {
		return
	}
	b.WriteString("\n" + r.paint(humanize.Warn, "In progress, no action needed:") + "\n")
	r.writeObjects(b, r.Waiting, true)
}

func (r Report) writeObjects(b *strings.Builder, of []Problem, withReason bool) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	for _, o := range of[:min(len(of), maxObjects)] {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s", o.objectName(), sanitizeText(o.State), r.formatAge(o), o.serviceText())
		if withReason {
			fmt.Fprintf(w, "\t%s", sanitizeText(o.Why))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if n := len(of) - maxObjects; n > 0 {
		fmt.Fprintf(b, "  and %d more; -o json has all\n", n)
	}
}

func (p Problem) objectName() string {
	return fmt.Sprintf("%s %s/%s", strings.ToLower(p.Kind), p.Namespace, sanitizeText(p.Name))
}

func (p Problem) serviceText() string {
	switch {
	case p.Service != "":
		return "Service " + sanitizeText(p.Service)
	case p.SharedBy != "":
		return "all Services of load balancer " + sanitizeText(p.SharedBy)
	}
	return ""
}

// formatAge formats how long, or how long at most, an object has had its state.
func (r Report) formatAge(w Problem) string {
	if !w.NotBefore.IsZero() {
		return "for up to " + duration.HumanDuration(max(0, r.At.Sub(w.NotBefore)))
	}
	return r.formatSince(w.Since)
}

func (r Report) formatSince(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "for " + duration.HumanDuration(max(0, r.At.Sub(t)))
}

// sanitizeText removes control characters, which could steer the terminal.
func sanitizeText(text string) string { return humanize.FormatMessage(text, humanize.MaxMessage) }
