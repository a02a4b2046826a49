// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

var kindNames = map[string]string{
	ReportLoadBalancer: "load balancer", ReportPublicIP: "public IP", ReportSecurityGroup: "security group", "securityRule": "security rule",
	ReportPrivateLinkService: "private link service", ReportConnection: "connection",
}

var actionMarks = map[lb.Action]string{lb.ActionAdd: "+", lb.ActionModify: "~", lb.ActionRemove: "-", "!": "!"}

var actionColors = map[lb.Action]string{lb.ActionAdd: "\x1b[32m", lb.ActionModify: "\x1b[33m", lb.ActionRemove: "\x1b[31m", "!": "\x1b[1;31m"}

const resetColor = "\x1b[0m"

// FormatText formats the plan for a terminal.
func (report Report) FormatText(colour bool) string {
	w := &textWriter{useColor: colour}
	for _, r := range report.Resources {
		w.writeResource(r)
	}
	w.writeServices(report)
	for i, note := range report.Notes {
		w.writeLine(0, "", "Note: "+note)
		if i == len(report.Notes)-1 {
			w.writeLine(0, "", "")
		}
	}
	w.writeLine(0, "", report.formatSummary())
	w.limits(report)
	w.writeLosses(report)
	for _, reason := range report.Stops {
		w.writeLine(0, "!", reason)
	}
	return w.out.String()
}

type textWriter struct {
	out      strings.Builder
	useColor bool
}

func (w *textWriter) writeLine(depth int, of lb.Action, text string) {
	text = strings.Map(replaceHidden, text)
	if of != "" {
		text = actionMarks[of] + " " + text
		if w.useColor {
			text = actionColors[of] + text + resetColor
		}
	}
	fmt.Fprintf(&w.out, "%s%s\n", strings.Repeat("    ", depth), text)
}

// replaceHidden replaces control characters: tags, paths and names are user-controlled.
func replaceHidden(r rune) rune {
	if isHidden(r) {
		return unicode.ReplacementChar
	}
	return r
}

func isHidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

func (w *textWriter) writeResource(r ResourceReport) {
	w.writeLine(0, r.Action, kindName(r.Kind)+" "+r.Name+" (resource group "+r.ResourceGroup+")"+serviceSuffix(r.Service))
	w.writeFields(1, r.Action, r.Fields)
	for _, p := range r.Parts {
		w.writeLine(1, p.Action, kindName(p.Kind)+" "+p.Name+serviceSuffix(p.Service))
		w.writeFields(2, p.Action, p.Fields)
		for _, m := range p.Members {
			w.writeLine(2, m.Action, formatMember(m))
		}
	}
	w.writeLine(0, "", "")
}

func kindName(kind string) string {
	if name := kindNames[kind]; name != "" {
		return name
	}
	return kind
}

func serviceSuffix(owner string) string {
	if owner == "" {
		return ""
	}
	return "  # " + service.DescribeOwner(owner)
}

func formatMember(m MemberReport) string {
	text := strings.TrimSpace(m.Address + " " + m.Name)
	switch {
	case m.WasAdminState != "":
		text += ": admin state " + m.WasAdminState + " → " + m.AdminState
	case m.AdminState != "":
		text += ": admin state " + m.AdminState
	}
	return text
}

func (w *textWriter) writeFields(depth int, of lb.Action, reports []FieldReport) {
	for _, f := range reports {
		switch {
		case of == lb.ActionRemove:
		case len(f.Added)+len(f.Removed) > 0 && of == lb.ActionAdd:
			w.writeLine(depth, "", f.Name+": "+strings.Join(f.Added, ", "))
		case len(f.Added)+len(f.Removed) > 0:
			w.writeLine(depth, "", f.Name+":")
			for _, a := range f.Added {
				w.writeLine(depth+1, lb.ActionAdd, a)
			}
			for _, r := range f.Removed {
				w.writeLine(depth+1, lb.ActionRemove, r)
			}
		case of == lb.ActionAdd:
			w.writeLine(depth, "", f.Name+": "+formatValue(f.Is))
		default:
			w.writeLine(depth, "", f.Name+": "+formatValue(f.Was)+" → "+formatValue(f.Is))
		}
	}
}

// formatValue formats a resource ID as its name.
func formatValue(text *string) string {
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

func (w *textWriter) writeServices(p Report) {
	before := w.out.Len()
	for _, s := range p.Services {
		if s.Refused != "" {
			w.writeLine(0, "!", service.DescribeOwner(s.Service)+" is refused: "+s.Refused)
		}
	}
	for _, s := range p.Services {
		if s.NoEffect != "" {
			w.writeLine(0, "!", service.DescribeOwner(s.Service)+": "+s.NoEffect)
		}
	}
	w.writeGrouped(p.Services, "!", func(s ServiceReport) string { return s.Failed }, func(subject, reason string) string { return subject + " could not be planned: " + reason })
	w.writeGrouped(p.Services, "!", func(s ServiceReport) string { return s.Kept }, func(subject, reason string) string { return subject + " kept: " + reason })
	w.writeGrouped(p.Services, "", func(s ServiceReport) string { return s.Note }, func(subject, note string) string { return "Note: " + subject + ": " + note })
	for _, l := range p.Pools {
		w.writeLine(0, "", "Note: BackendPool "+l.BackendPool+" leaves its pool as it is: "+l.Why)
	}
	if w.out.Len() > before {
		w.writeLine(0, "", "")
	}
}

// writeGrouped writes equal texts of several Services in one line.
func (w *textWriter) writeGrouped(reports []ServiceReport, mark lb.Action, of func(ServiceReport) string, line func(subject, noun string) string) {
	seen := map[string]bool{}
	for i, s := range reports {
		text := of(s)
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		subject, more := service.DescribeOwner(s.Service), 0
		for _, o := range reports[i+1:] {
			if of(o) == text {
				more++
			}
		}
		if more > 0 {
			subject += " and " + formatCount(more, "other")
		}
		w.writeLine(0, mark, line(subject, text))
	}
}

func (report Report) formatSummary() string {
	refused, failed, gateways := report.CountRejected(), 0, 0
	for _, s := range report.Services {
		if _, ok := service.GatewayOf(path.Base(s.Service)); ok {
			gateways++
		}
		if s.Failed != "" {
			failed++
		}
	}
	planned := formatCount(len(report.Services)-gateways, "Service")
	switch {
	case gateways == len(report.Services) && gateways > 0:
		planned = formatCount(gateways, "Gateway")
	case gateways > 0:
		planned += ", " + formatCount(gateways, "Gateway")
	}
	if refused > 0 {
		planned += fmt.Sprintf(", %d refused", refused)
	}
	if failed > 0 {
		planned += fmt.Sprintf(", %d could not be planned", failed)
	}
	switch {
	case report.Changes == 0 && failed > 0:
		return "Not complete (" + planned + ")."
	case report.Changes == 0:
		return "No changes (" + planned + ")."
	}
	n := map[lb.Action]int{}
	for _, r := range report.Resources {
		n[r.Action]++
	}
	text := fmt.Sprintf("%s to add, %d to change, %d to remove (%s).", formatCount(n[lb.ActionAdd], "resource"), n[lb.ActionModify], n[lb.ActionRemove], planned)
	if report.PoolWrites > 0 {
		text += " Members take " + formatCount(report.PoolWrites, "write") + " of pools."
	}
	return text
}

func formatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FormatBrief formats the plan in one line, for an event.
func (report Report) FormatBrief() string {
	if report.Changes == 0 {
		return "dry run: nothing would change in Azure"
	}
	var texts []string
	for _, r := range report.Resources {
		text := actionVerbs[r.Action] + " " + kindName(r.Kind) + " " + r.Name
		var parts []string
		for _, part := range r.Parts {
			parts = append(parts, actionMarks[part.Action]+" "+kindName(part.Kind)+" "+part.Name+formatMemberCounts(part))
		}
		if len(parts) > 0 && r.Action == lb.ActionModify {
			text += " (" + strings.Join(parts, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return "dry run: nothing is changed in Azure; it would " + strings.Join(texts, ", ")
}

var actionVerbs = map[lb.Action]string{lb.ActionAdd: "add", lb.ActionModify: "change", lb.ActionRemove: "remove"}

func formatMemberCounts(p PartReport) string {
	n := map[lb.Action]int{}
	for _, m := range p.Members {
		n[m.Action]++
	}
	var texts []string
	for _, of := range []lb.Action{lb.ActionAdd, lb.ActionModify, lb.ActionRemove} {
		if n[of] > 0 {
			texts = append(texts, actionMarks[of]+strconv.Itoa(n[of]))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return ": " + strings.Join(texts, " ") + " of its members"
}
