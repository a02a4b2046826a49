// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Text formats the report.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s, by weir %s with %d requests\n\n",
		cmp.Or(r.Cloud, "Azure"), r.Location, r.When.Format(time.RFC3339), r.Version, r.Requests)
	for _, f := range r.Questions {
		fmt.Fprintf(&b, "%-22s %s\n", f.Name, f.verdict())
		fmt.Fprintf(&b, "    %s\n", f.Asks)
		for _, s := range f.Seen {
			fmt.Fprintf(&b, "    - %s\n", s)
		}
	}
	if len(r.Latencies) > 0 {
		b.WriteString("\nfrom the request to the end of the write, in seconds     count  at once    median   longest\n")
	}
	for _, l := range r.Latencies {
		for i, part := range wrap(l.Write, 52) {
			if i > 0 {
				fmt.Fprintf(&b, "  %s\n", part)
				continue
			}
			fmt.Fprintf(&b, "  %-52s %7d %8d %9s %9s\n", part, l.Count, l.AtOnce, l.Median, l.Longest)
		}
	}
	fmt.Fprintf(&b, "\n%d of %d questions are answered. As JSON, for --azure-behaviour: --out FILE, or -o json.\n",
		len(r.Questions)-r.Open(), len(r.Questions))
	return b.String()
}

func (f Finding) verdict() string {
	switch f.Answer {
	case "":
		return "open: " + f.Why
	case f.Assumed:
		return string(f.Answer) + ", as is assumed"
	}
	return fmt.Sprintf("%s; assumed is %s", f.Answer, f.Assumed)
}

// String formats the observation in one line.
func (s Seen) String() string {
	text := s.Did + ": "
	if s.Status > 0 {
		text += fmt.Sprint(s.Status)
	}
	if len(s.Codes) > 0 {
		text += " " + strings.Join(s.Codes, " ")
	}
	if s.Ended != "" {
		text += ", ended " + s.Ended
	}
	if s.Saw != "" {
		text += "; " + s.Saw
	}
	return text
}

// String formats the duration or its bounds.
func (s Span) String() string {
	if s.AtLeastSeconds == s.AtMostSeconds {
		return fmt.Sprintf("%.1f", s.AtMostSeconds)
	}
	return fmt.Sprintf("%.0f to %.0f", s.AtLeastSeconds, s.AtMostSeconds)
}

func wrap(text string, width int) []string {
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
