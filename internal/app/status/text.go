// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"weir.dev/weir/internal/words"
)

// maxObjects limits the printed objects per cause; -o json has all.
const maxObjects = 10

// WriteJSON writes the report as JSON.
func (r Report) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the summary, then the problems.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	b.WriteString(r.Summary())
	if !r.InSync || len(r.Waiting) > 0 || len(r.Paused) > 0 { // messages contain times
		b.WriteString(" It is " + r.At.UTC().Format(time.RFC3339) + ".")
	}
	b.WriteString("\n")
	if mends, of := r.BestRemedy(); mends != "" {
		fmt.Fprintf(&b, "What mends most: %s (%d of %d).\n", mends, of, r.countProblems())
	}
	for _, c := range r.Causes {
		r.writeCause(&b, c)
	}
	r.writeWaiting(&b)
	r.writePaused(&b)
	if len(r.Notes) > 0 {
		b.WriteString("\nTo note, and no fault of Weir's:\n")
	}
	for _, c := range r.Notes {
		r.writeCause(&b, c)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// BestRemedy returns the fix that helps the most objects, and their number, if there are several causes.
func (r Report) BestRemedy() (do string, of int) {
	if len(r.Causes) < 2 {
		return "", 0
	}
	for _, c := range r.Causes {
		if c.Do != "" && !strings.HasPrefix(c.Do, "nothing") { // the others resolve by themselves
			return c.Do, len(c.Of)
		}
	}
	return "", 0
}

func (r Report) countProblems() (n int) {
	for _, c := range r.Causes {
		n += len(c.Of)
	}
	return n
}

// Summary summarizes the report in one or two sentences.
func (r Report) Summary() string {
	all := words.FormatCount(r.Pools.All, "BackendPool") + ", " + words.FormatCount(r.Services.All, "Service")
	text := "Level: " + all + "."
	switch {
	case !r.InSync:
		text = "Something is wrong" + r.problemText() + "."
	case len(r.Waiting) > 0 || len(r.Paused) > 0:
		text = "Nothing is wrong: " + all + "."
	}
	if on := r.pendingText(); on != "" {
		text += " " + on + "."
	}
	if n := len(r.Paused); n > 0 {
		text += fmt.Sprintf(" Paused: %d.", n)
	}
	switch {
	case !r.Leader.Known:
		text += " The leader is unknown: you may not list Leases."
	case r.Leader.hasNoHolder():
		text += " Nobody leads."
	case r.Leader.Holder == "":
		text += fmt.Sprintf(" Whether Weir runs is not known: there is no Lease %s, as with --leader-elect=false.", LeaseName)
	default:
		text += fmt.Sprintf(" %s leads.", sanitizeText(r.Leader.Holder))
	}
	return text
}

func (r Report) pendingText() string {
	var of []string
	if n := r.Pools.UnderWay; n > 0 {
		of = append(of, words.FormatCount(n, "BackendPool"))
	}
	if n := r.Services.UnderWay; n > 0 {
		of = append(of, words.FormatCount(n, "Service"))
	}
	switch text := strings.Join(of, " and "); {
	case text == "":
		return ""
	case r.Leader.hasNoHolder():
		return "Waiting for a leader: " + text
	default:
		return "On the way: " + text
	}
}

func (r Report) problemText() string {
	var of []string
	for _, c := range []struct {
		Count
		kind string
	}{{r.Pools, "BackendPool"}, {r.Services, "Service"}} {
		if c.Wrong > 0 {
			of = append(of, fmt.Sprintf("%d of %s", c.Wrong, words.FormatCount(c.All, c.kind)))
		}
	}
	if len(of) == 0 {
		return ""
	}
	return " with " + strings.Join(of, " and ")
}

func (r Report) writeCause(b *strings.Builder, c Cause) {
	fmt.Fprintf(b, "\n%s: %s\n", sanitizeText(c.Name), sanitizeText(c.Of[0].Why))
	if c.Do != "" {
		fmt.Fprintf(b, "  What to do: %s.\n", c.Do)
	}
	if c.Name == NoLeader || c.Name == NoProvisioner { // the Lease itself adds nothing
		return
	}
	r.writeObjects(b, c.Of, false)
}

// writeWaiting prints objects in progress, unless they only wait for a leader.
func (r Report) writeWaiting(b *strings.Builder) {
	if len(r.Waiting) == 0 || r.Leader.hasNoHolder() {
		return
	}
	b.WriteString("\nIn progress, no action needed:\n")
	r.writeObjects(b, r.Waiting, true)
}

func (r Report) writeObjects(b *strings.Builder, of []Problem, why bool) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	for _, o := range of[:min(len(of), maxObjects)] {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s", o.objectName(), sanitizeText(o.State), r.formatAge(o), o.serviceText())
		if why {
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

func (w Problem) objectName() string {
	return fmt.Sprintf("%s %s/%s", strings.ToLower(w.Kind), w.Namespace, sanitizeText(w.Name))
}

func (w Problem) serviceText() string {
	if w.Service == "" {
		return ""
	}
	return "Service " + sanitizeText(w.Service)
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
func sanitizeText(text string) string { return words.FormatMessage(text, words.MaxMessage) }
