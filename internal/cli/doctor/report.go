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
	Do string `json:"do,omitempty"`
}

// Report holds the results of all checks.
type Report struct {
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`
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

// WriteText writes the problems, then a table of the rest.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.summaryText())
	sanitize := func(text string) string { return humanize.FormatMessage(text, humanize.MaxMessage) }
	for _, result := range problemOrder {
		for _, c := range r.Checks {
			if c.Result != result {
				continue
			}
			fmt.Fprintf(&b, "%-7s   %s\n          %s\n", c.Result, sanitize(c.Name), sanitize(c.Why))
			if c.Do != "" {
				fmt.Fprintf(&b, "          What helps: %s\n", sanitize(c.Do))
			}
			b.WriteString("\n")
		}
	}
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range r.Checks {
		if c.Result == OK {
			fmt.Fprintf(w, "%-7s\t%s\t%s\n", c.Result, sanitize(c.Name), sanitize(c.Why))
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
