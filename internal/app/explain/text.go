// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"weir.dev/weir/internal/app/status"
	"weir.dev/weir/internal/words"
)

// WriteJSON writes JSON.
func (s Explanation) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// WriteText writes text.
func (s Explanation) WriteText(out io.Writer) error {
	var b strings.Builder
	if s.Service != nil {
		s.writeService(&b)
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
	s.writeEvents(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (s Explanation) writeService(b *strings.Builder) {
	v := s.Service
	fmt.Fprintf(b, "Service %s/%s: %s, externalTrafficPolicy %s\n", v.Namespace, sanitizeText(v.Name), sanitizeText(v.Type), sanitizeText(v.Policy))
	writeLine(b, "Addresses", joinOrDefault(v.Addresses, "none yet"))
	writeLine(b, "Load balancers", joinOrDefault(v.LoadBalancers, "none of Weir's"))
	for _, c := range v.Conditions {
		writeLine(b, sanitizeText(c.Type), fmt.Sprintf("%s, %s for %s: %s", c.Status, sanitizeText(c.Reason), s.formatAge(c.LastTransitionTime.Time), sanitizeText(c.Message)))
	}
	if len(s.Pools) == 0 {
		writeLine(b, "BackendPools", "none")
	}
}

func (s Explanation) writeNode(b *strings.Builder) {
	n := s.Node
	fmt.Fprintf(b, "Node %s\n", sanitizeText(n.Name))
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
		writeLine(b, "BackendPools", "none has it")
	}
}

func (s Explanation) writePool(b *strings.Builder, p Pool) {
	fmt.Fprintf(b, "\nBackendPool %s/%s: %s for %s\n", p.Namespace, sanitizeText(p.Name), sanitizeText(p.State), s.formatAge(p.Since))
	writeLine(b, "Pool", fmt.Sprintf("%s of load balancer %s", p.Pool, p.LoadBalancer))
	if s.Node == nil {
		writeLine(b, "Members", formatCounts(p))
		writeLine(b, "Why", sanitizeText(p.Why))
		if p.Next != "" {
			writeLine(b, "Next", sanitizeText(p.Next))
		}
		if do := status.RemedyOf(p.Cause, status.Problem{Namespace: p.Namespace, Name: p.Name}); do != "" {
			writeLine(b, "What to do", do)
		}
	}
	if len(p.Members) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  NODE\tADDRESS\tIS\n")
	for _, m := range p.Members {
		is := m.Is
		if m.Why != "" {
			is += ": " + sanitizeText(m.Why)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", valueOrDash(m.Node), valueOrDash(m.Address), is)
	}
	w.Flush()
	if p.Unnamed > 0 {
		fmt.Fprintf(b, "  %d more are missing, surplus or foreign: the status names 50 of each\n", p.Unnamed)
	}
}

func formatCounts(p Pool) string {
	if p.Desired == nil || p.Observed == nil {
		return "not known yet"
	}
	text := fmt.Sprintf("%d are wanted, Azure showed %d", *p.Desired, *p.Observed)
	if n := ptr.Deref(p.Foreign, 0); n > 0 {
		text += fmt.Sprintf(", %d of them not managed by Weir", n)
	}
	return text
}

func (s Explanation) writeEvents(b *strings.Builder) {
	if len(s.Events) == 0 {
		b.WriteString("\nWhat happened: no event is kept of it\n")
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

func (s Explanation) formatAge(t time.Time) string {
	if t.IsZero() {
		return "ever"
	}
	return duration.HumanDuration(max(0, s.At.Sub(t)))
}

func writeLine(b *strings.Builder, what, is string) { fmt.Fprintf(b, "  %s: %s\n", what, is) }

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
func sanitizeText(text string) string { return words.FormatMessage(text, words.MaxMessage) }
