// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"weir.dev/weir/internal/plan"
)

var kinds = map[string]string{
	LoadBalancer: "load balancer", PublicIP: "public IP", SecurityGroup: "security group", "securityRule": "security rule",
	PrivateLinkService: "private link service", Connection: "connection",
}

var marks = map[plan.Action]string{plan.Add: "+", plan.Alter: "~", plan.Remove: "-", "!": "!"}

var colours = map[plan.Action]string{plan.Add: "\x1b[32m", plan.Alter: "\x1b[33m", plan.Remove: "\x1b[31m", "!": "\x1b[1;31m"}

const plain = "\x1b[0m"

// Text formats the plan for a terminal.
func (p Plan) Text(colour bool) string {
	w := &writer{colour: colour}
	for _, r := range p.Resources {
		w.resource(r)
	}
	w.services(p)
	for i, note := range p.Notes {
		w.line(0, "", "Note: "+note)
		if i == len(p.Notes)-1 {
			w.line(0, "", "")
		}
	}
	w.line(0, "", p.summary())
	w.limits(p)
	w.losses(p)
	for _, why := range p.Stops {
		w.line(0, "!", why)
	}
	return w.out.String()
}

type writer struct {
	out    strings.Builder
	colour bool
}

func (w *writer) line(depth int, of plan.Action, text string) {
	text = strings.Map(visible, text)
	if of != "" {
		text = marks[of] + " " + text
		if w.colour {
			text = colours[of] + text + plain
		}
	}
	fmt.Fprintf(&w.out, "%s%s\n", strings.Repeat("    ", depth), text)
}

// visible replaces control characters: tags, paths and names are user-controlled.
func visible(r rune) rune {
	if hidden(r) {
		return unicode.ReplacementChar
	}
	return r
}

func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func (w *writer) resource(r Resource) {
	w.line(0, r.Action, kindOf(r.Kind)+" "+r.Name+" (resource group "+r.ResourceGroup+")"+of(r.Service))
	w.fields(1, r.Action, r.Fields)
	for _, p := range r.Parts {
		w.line(1, p.Action, kindOf(p.Kind)+" "+p.Name+of(p.Service))
		w.fields(2, p.Action, p.Fields)
		for _, m := range p.Members {
			w.line(2, m.Action, memberText(m))
		}
	}
	w.line(0, "", "")
}

func kindOf(kind string) string {
	if name := kinds[kind]; name != "" {
		return name
	}
	return kind
}

func of(service string) string {
	if service == "" {
		return ""
	}
	return "  # Service " + service
}

func memberText(m Member) string {
	text := strings.TrimSpace(m.Address + " " + m.Name)
	switch {
	case m.WasAdminState != "":
		text += ": admin state " + m.WasAdminState + " → " + m.AdminState
	case m.AdminState != "":
		text += ": admin state " + m.AdminState
	}
	return text
}

func (w *writer) fields(depth int, of plan.Action, all []Field) {
	for _, f := range all {
		switch {
		case of == plan.Remove:
		case len(f.Added)+len(f.Removed) > 0 && of == plan.Add:
			w.line(depth, "", f.Name+": "+strings.Join(f.Added, ", "))
		case len(f.Added)+len(f.Removed) > 0:
			w.line(depth, "", f.Name+":")
			for _, a := range f.Added {
				w.line(depth+1, plan.Add, a)
			}
			for _, r := range f.Removed {
				w.line(depth+1, plan.Remove, r)
			}
		case of == plan.Add:
			w.line(depth, "", f.Name+": "+spell(f.Is))
		default:
			w.line(depth, "", f.Name+": "+spell(f.Was)+" → "+spell(f.Is))
		}
	}
}

// spell formats a resource ID as its name.
func spell(text *string) string {
	switch {
	case text == nil:
		return "none"
	case *text == "":
		return `""`
	case strings.HasPrefix(*text, "/subscriptions/"):
		return path.Base(*text)
	}
	return *text
}

func (w *writer) services(p Plan) {
	before := w.out.Len()
	for _, s := range p.Services {
		if s.Refused != "" {
			w.line(0, "!", "Service "+s.Service+" is refused: "+s.Refused)
		}
	}
	for _, s := range p.Services {
		if s.NoEffect != "" {
			w.line(0, "!", "Service "+s.Service+": "+s.NoEffect)
		}
	}
	w.alike(p.Services, "!", func(s Service) string { return s.Failed }, func(subject, why string) string { return subject + " could not be planned: " + why })
	w.alike(p.Services, "!", func(s Service) string { return s.Kept }, func(subject, why string) string { return subject + " kept: " + why })
	w.alike(p.Services, "", func(s Service) string { return s.Note }, func(subject, note string) string { return "Note: " + subject + ": " + note })
	for _, l := range p.Pools {
		w.line(0, "", "Note: BackendPool "+l.BackendPool+" leaves its pool as it is: "+l.Why)
	}
	if w.out.Len() > before {
		w.line(0, "", "")
	}
}

// alike writes equal texts of several Services in one line.
func (w *writer) alike(all []Service, mark plan.Action, of func(Service) string, line func(subject, what string) string) {
	said := map[string]bool{}
	for i, s := range all {
		what := of(s)
		if what == "" || said[what] {
			continue
		}
		said[what] = true
		subject, more := "Service "+s.Service, 0
		for _, o := range all[i+1:] {
			if of(o) == what {
				more++
			}
		}
		if more > 0 {
			subject += " and " + count(more, "other")
		}
		w.line(0, mark, line(subject, what))
	}
}

func (p Plan) summary() string {
	refused, failed := p.Refused(), 0
	for _, s := range p.Services {
		if s.Failed != "" {
			failed++
		}
	}
	planned := count(len(p.Services), "Service")
	if refused > 0 {
		planned += fmt.Sprintf(", %d refused", refused)
	}
	if failed > 0 {
		planned += fmt.Sprintf(", %d could not be planned", failed)
	}
	switch {
	case p.Changes == 0 && failed > 0:
		return "Not complete (" + planned + ")."
	case p.Changes == 0:
		return "No changes (" + planned + ")."
	}
	n := map[plan.Action]int{}
	for _, r := range p.Resources {
		n[r.Action]++
	}
	text := fmt.Sprintf("%s to add, %d to change, %d to remove (%s).", count(n[plan.Add], "resource"), n[plan.Alter], n[plan.Remove], planned)
	if p.PoolWrites > 0 {
		text += " Members take " + count(p.PoolWrites, "write") + " of pools."
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Brief formats the plan in one line, for an event.
func (p Plan) Brief() string {
	if p.Changes == 0 {
		return "dry run: nothing would change in Azure"
	}
	var texts []string
	for _, r := range p.Resources {
		text := verbs[r.Action] + " " + kindOf(r.Kind) + " " + r.Name
		var parts []string
		for _, part := range r.Parts {
			parts = append(parts, marks[part.Action]+" "+kindOf(part.Kind)+" "+part.Name+briefly(part))
		}
		if len(parts) > 0 && r.Action == plan.Alter {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return "dry run: nothing is changed in Azure; it would " + strings.Join(texts, ", ")
}

var verbs = map[plan.Action]string{plan.Add: "add", plan.Alter: "change", plan.Remove: "remove"}

func briefly(p Part) string {
	n := map[plan.Action]int{}
	for _, m := range p.Members {
		n[m.Action]++
	}
	var texts []string
	for _, of := range []plan.Action{plan.Add, plan.Alter, plan.Remove} {
		if n[of] > 0 {
			texts = append(texts, marks[of]+strconv.Itoa(n[of]))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, " ") + " of its members"
}
