// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/internal/lb/behavior"
)

// FormatReport formats a report as text.
func FormatReport(r behavior.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s, by weir %s with %d requests\n\n",
		cmp.Or(r.Cloud, "Azure"), r.Location, r.When.Format(time.RFC3339), r.Version, r.Requests)
	for _, f := range r.Properties {
		fmt.Fprintf(&b, "%-22s %s\n", f.Name, formatResult(f))
		fmt.Fprintf(&b, "    %s\n", f.Description)
		for _, s := range f.Events {
			fmt.Fprintf(&b, "    - %s\n", formatEvent(s))
		}
	}
	if len(r.Latencies) > 0 {
		b.WriteString("\nfrom the request to the end of the write, in seconds     count  at once    median   longest\n")
	}
	for _, l := range r.Latencies {
		for i, part := range wrapText(l.Write, 52) {
			if i > 0 {
				fmt.Fprintf(&b, "  %s\n", part)
				continue
			}
			fmt.Fprintf(&b, "  %-52s %7d %8d %9s %9s\n", part, l.Count, l.Immediate, formatSpan(l.Median), formatSpan(l.Longest))
		}
	}
	fmt.Fprintf(&b, "\n%d of %d questions are answered. As JSON, for --azure-behaviour: --out FILE, or -o json.\n",
		len(r.Properties)-r.CountOpen(), len(r.Properties))
	return b.String()
}

func formatResult(f behavior.PropertyResult) string {
	switch f.Result {
	case "":
		return "open: " + f.Reason
	case f.Assumed:
		return string(f.Result) + ", as is assumed"
	}
	return fmt.Sprintf("%s; assumed is %s", f.Result, f.Assumed)
}

func formatEvent(s behavior.Event) string {
	text := s.Action + ": "
	if s.Status > 0 {
		text += fmt.Sprint(s.Status)
	}
	if len(s.Codes) > 0 {
		text += " " + strings.Join(s.Codes, " ")
	}
	if s.State != "" {
		text += ", ended " + s.State
	}
	if s.Details != "" {
		text += "; " + s.Details
	}
	return text
}

// formatSpan formats the duration or its bounds.
func formatSpan(s behavior.Span) string {
	if s.AtLeastSeconds == s.AtMostSeconds {
		return fmt.Sprintf("%.1f", s.AtMostSeconds)
	}
	return fmt.Sprintf("%.0f to %.0f", s.AtLeastSeconds, s.AtMostSeconds)
}

func wrapText(text string, width int) []string {
	var lines []string
	for len(text) > width {
		at := strings.LastIndexByte(text[:width], ' ')
		if at <= 0 {
			break
		}
		lines = append(lines, text[:at])
		text = text[at+1:]
	}
	return append(lines, text)
}
