// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/humanize"
)

// Result is the result of a check.
type Result string

// Results of a check.
const (
	OK      Result = "OK"
	Warn    Result = "WARN"    // Weir runs, but needs attention
	Fail    Result = "FAIL"    // Weir lacks a requirement
	Unknown Result = "UNKNOWN" // no permission to check, or no response
)

// Check is the result for one requirement.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Why    string `json:"why"`
	// Do is the suggested fix.
	Fix string `json:"do,omitempty"`
}

// Report holds the results of all checks.
type Report struct {
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`

	isColored bool // text only
}

// CountResults counts the checks with a verdict.
func (r Report) CountResults(v Result) (n int) {
	for _, c := range r.Checks {
		if c.Result == v {
			n++
		}
	}
	return n
}

// HasResponse reports whether the API server responded.
func (r Report) HasResponse() bool { return len(r.Checks) > 0 && r.Checks[0].Result != Unknown }

// WriteJSON writes JSON.
func (r Report) WriteJSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// problemOrder is that of the results in the text: what must be fixed is first.
var problemOrder = []Result{Fail, Warn, Unknown}

// WriteColored is WriteText for a terminal with colors.
func (r Report) WriteColored(out io.Writer) error {
	r.isColored = true
	return r.WriteText(out)
}

func (r Report) paint(style humanize.Style, text string) string {
	return humanize.PaintText(r.isColored, style, text)
}

// resultStyles are the colors of results.
var resultStyles = map[Result]humanize.Style{OK: humanize.Good, Warn: humanize.Warn, Fail: humanize.Bad, Unknown: humanize.Warn}

// formatResult pads before it paints: the codes of colors have no width.
func (r Report) formatResult(v Result) string {
	return r.paint(resultStyles[v], fmt.Sprintf("%-7s", v))
}

// summaryStyle is the color of the worst result.
func (r Report) summaryStyle() humanize.Style {
	for _, result := range problemOrder {
		if r.CountResults(result) > 0 {
			return resultStyles[result]
		}
	}
	return humanize.Good
}

// WriteText writes the problems, then a table of the rest.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.paint(r.summaryStyle(), r.summaryText()))
	sanitize := func(text string) string { return humanize.FormatMessage(text, humanize.MaxMessage) }
	for _, result := range problemOrder {
		for _, c := range r.Checks {
			if c.Result != result {
				continue
			}
			fmt.Fprintf(&b, "%s   %s\n          %s\n", r.formatResult(c.Result), sanitize(c.Name), sanitize(c.Why))
			if c.Fix != "" {
				fmt.Fprintf(&b, "          %s %s\n", r.paint(humanize.Title, "What helps:"), sanitize(c.Fix))
			}
			b.WriteString("\n")
		}
	}
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range r.Checks {
		if c.Result == OK {
			fmt.Fprintf(w, "%s\t%s\t%s\n", r.formatResult(c.Result), sanitize(c.Name), sanitize(c.Why))
		}
	}
	w.Flush()
	_, err := io.WriteString(out, b.String())
	return err
}

func (r Report) summaryText() string {
	fails, warns, unknown := r.CountResults(Fail), r.CountResults(Warn), r.CountResults(Unknown)
	if fails+warns+unknown == 0 {
		return fmt.Sprintf("All is well: %s.", humanize.FormatCount(len(r.Checks), "check"))
	}
	return fmt.Sprintf("%s: %d fail, %d warn, %d not known.", humanize.FormatCount(len(r.Checks), "check"), fails, warns, unknown)
}
