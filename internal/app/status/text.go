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

// shown limits the printed objects per cause; -o json has all.
const shown = 10

// JSON writes the report as JSON.
func (r Report) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Text writes the summary, then the problems.
func (r Report) Text(out io.Writer) error {
	var b strings.Builder
	b.WriteString(r.Verdict())
	if !r.Level || len(r.Waiting) > 0 || len(r.Paused) > 0 { // messages contain times
		b.WriteString(" It is " + r.At.UTC().Format(time.RFC3339) + ".")
	}
	b.WriteString("\n")
	if mends, of := r.Mends(); mends != "" {
		fmt.Fprintf(&b, "What mends most: %s (%d of %d).\n", mends, of, r.wrong())
	}
	for _, c := range r.Causes {
		r.cause(&b, c)
	}
	r.waiting(&b)
	r.paused(&b)
	if len(r.Notes) > 0 {
		b.WriteString("\nTo note, and no fault of Weir's:\n")
	}
	for _, c := range r.Notes {
		r.cause(&b, c)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Mends returns the fix that helps the most objects, and their number, if there are several causes.
func (r Report) Mends() (do string, of int) {
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

func (r Report) wrong() (n int) {
	for _, c := range r.Causes {
		n += len(c.Of)
	}
	return n
}

// Verdict summarizes the report in one or two sentences.
func (r Report) Verdict() string {
	all := words.Count(r.Pools.All, "BackendPool") + ", " + words.Count(r.Services.All, "Service")
	text := "Level: " + all + "."
	switch {
	case !r.Level:
		text = "Something is wrong" + r.with() + "."
	case len(r.Waiting) > 0 || len(r.Paused) > 0:
		text = "Nothing is wrong: " + all + "."
	}
	if on := r.underWay(); on != "" {
		text += " " + on + "."
	}
	if n := len(r.Paused); n > 0 {
		text += fmt.Sprintf(" Paused: %d.", n)
	}
	switch {
	case !r.Leader.Known:
		text += " The leader is unknown: you may not list Leases."
	case r.Leader.nobody():
		text += " Nobody leads."
	case r.Leader.Holder == "":
		text += fmt.Sprintf(" Whether Weir runs is not known: there is no Lease %s, as with --leader-elect=false.", LeaseName)
	default:
		text += fmt.Sprintf(" %s leads.", printed(r.Leader.Holder))
	}
	return text
}

func (r Report) underWay() string {
	var of []string
	if n := r.Pools.UnderWay; n > 0 {
		of = append(of, words.Count(n, "BackendPool"))
	}
	if n := r.Services.UnderWay; n > 0 {
		of = append(of, words.Count(n, "Service"))
	}
	switch text := strings.Join(of, " and "); {
	case text == "":
		return ""
	case r.Leader.nobody():
		return "Waiting for a leader: " + text
	default:
		return "On the way: " + text
	}
}

func (r Report) with() string {
	var of []string
	for _, c := range []struct {
		Count
		kind string
	}{{r.Pools, "BackendPool"}, {r.Services, "Service"}} {
		if c.Wrong > 0 {
			of = append(of, fmt.Sprintf("%d of %s", c.Wrong, words.Count(c.All, c.kind)))
		}
	}
	if len(of) == 0 {
		return ""
	}
	return " with " + strings.Join(of, " and ")
}

func (r Report) cause(b *strings.Builder, c Cause) {
	fmt.Fprintf(b, "\n%s: %s\n", printed(c.Name), printed(c.Of[0].Why))
	if c.Do != "" {
		fmt.Fprintf(b, "  What to do: %s.\n", c.Do)
	}
	if c.Name == NoLeader || c.Name == NoProvisioner { // the Lease itself adds nothing
		return
	}
	r.objects(b, c.Of, false)
}

// waiting prints objects in progress, unless they only wait for a leader.
func (r Report) waiting(b *strings.Builder) {
	if len(r.Waiting) == 0 || r.Leader.nobody() {
		return
	}
	b.WriteString("\nIn progress, no action needed:\n")
	r.objects(b, r.Waiting, true)
}

func (r Report) objects(b *strings.Builder, of []Wrong, why bool) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	for _, o := range of[:min(len(of), shown)] {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s", o.name(), printed(o.State), r.age(o), o.forWhom())
		if why {
			fmt.Fprintf(w, "\t%s", printed(o.Why))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if n := len(of) - shown; n > 0 {
		fmt.Fprintf(b, "  and %d more; -o json has all\n", n)
	}
}

func (w Wrong) name() string {
	return fmt.Sprintf("%s %s/%s", strings.ToLower(w.Kind), w.Namespace, printed(w.Name))
}

func (w Wrong) forWhom() string {
	if w.Service == "" {
		return ""
	}
	return "Service " + printed(w.Service)
}

// age formats how long, or how long at most, an object has had its state.
func (r Report) age(w Wrong) string {
	if !w.NotBefore.IsZero() {
		return "for up to " + duration.HumanDuration(max(0, r.At.Sub(w.NotBefore)))
	}
	return r.since(w.Since)
}

func (r Report) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "for " + duration.HumanDuration(max(0, r.At.Sub(t)))
}

// printed removes control characters, which could steer the terminal.
func printed(text string) string { return words.Sentence(text, words.MaxMessage) }
