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

// JSON writes JSON.
func (s Story) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// Text writes text.
func (s Story) Text(out io.Writer) error {
	var b strings.Builder
	if s.Service != nil {
		s.service(&b)
	}
	if s.Node != nil {
		s.node(&b)
	}
	for _, p := range s.Pools {
		s.pool(&b, p)
	}
	if s.NodesUnseen {
		b.WriteString("\nYou may not list Nodes: only recorded members are shown.\n")
	}
	s.events(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (s Story) service(b *strings.Builder) {
	v := s.Service
	fmt.Fprintf(b, "Service %s/%s: %s, externalTrafficPolicy %s\n", v.Namespace, printed(v.Name), printed(v.Type), printed(v.Policy))
	line(b, "Addresses", orNone(v.Addresses, "none yet"))
	line(b, "Load balancers", orNone(v.LoadBalancers, "none of Weir's"))
	for _, c := range v.Conditions {
		line(b, printed(c.Type), fmt.Sprintf("%s, %s for %s: %s", c.Status, printed(c.Reason), s.since(c.LastTransitionTime.Time), printed(c.Message)))
	}
	if len(s.Pools) == 0 {
		line(b, "BackendPools", "none")
	}
}

func (s Story) node(b *strings.Builder) {
	n := s.Node
	fmt.Fprintf(b, "Node %s\n", printed(n.Name))
	line(b, "Addresses", orNone(n.Addresses, "none that a load balancer reaches"))
	switch {
	case n.Excluded != "" && len(s.Pools) > 0:
		line(b, "Excluded", n.Excluded+". Until it has left them, it is in the pools below")
	case n.Excluded != "":
		line(b, "Left out of every pool", n.Excluded)
	}
	for _, text := range n.Duplicates {
		line(b, "Duplicate address", printed(text))
	}
	if len(n.Taints) > 0 {
		line(b, "Taints", printed(strings.Join(n.Taints, ", ")))
	}
	if len(s.Pools) == 0 {
		line(b, "BackendPools", "none has it")
	}
}

func (s Story) pool(b *strings.Builder, p Pool) {
	fmt.Fprintf(b, "\nBackendPool %s/%s: %s for %s\n", p.Namespace, printed(p.Name), printed(p.State), s.since(p.Since))
	line(b, "Pool", fmt.Sprintf("%s of load balancer %s", p.Pool, p.LoadBalancer))
	if s.Node == nil {
		line(b, "Members", counted(p))
		line(b, "Why", printed(p.Why))
		if p.Next != "" {
			line(b, "Next", printed(p.Next))
		}
		if do := status.RemedyOf(p.Cause, status.Wrong{Namespace: p.Namespace, Name: p.Name}); do != "" {
			line(b, "What to do", do)
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
			is += ": " + printed(m.Why)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", orDash(m.Node), orDash(m.Address), is)
	}
	w.Flush()
	if p.Unnamed > 0 {
		fmt.Fprintf(b, "  %d more are missing, surplus or foreign: the status names 50 of each\n", p.Unnamed)
	}
}

func counted(p Pool) string {
	if p.Desired == nil || p.Observed == nil {
		return "not known yet"
	}
	text := fmt.Sprintf("%d are wanted, Azure showed %d", *p.Desired, *p.Observed)
	if n := ptr.Deref(p.Foreign, 0); n > 0 {
		text += fmt.Sprintf(", %d of them not managed by Weir", n)
	}
	return text
}

func (s Story) events(b *strings.Builder) {
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
		fmt.Fprintf(w, "  %s\t%s %s\t%s: %s%s\n", e.At.UTC().Format(time.RFC3339), strings.ToLower(e.Kind), printed(e.Name), printed(e.Reason), printed(e.Message), times)
	}
	w.Flush()
}

func (s Story) since(t time.Time) string {
	if t.IsZero() {
		return "ever"
	}
	return duration.HumanDuration(max(0, s.At.Sub(t)))
}

func line(b *strings.Builder, what, is string) { fmt.Fprintf(b, "  %s: %s\n", what, is) }

func orNone(of []string, none string) string {
	if len(of) == 0 {
		return none
	}
	return printed(strings.Join(of, ", "))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return printed(text)
}

// printed removes control characters, which could steer the terminal.
func printed(text string) string { return words.Sentence(text, words.MaxMessage) }
