// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/words"
)

// Verdict is the result of a check.
type Verdict string

// Results of a check.
const (
	OK      Verdict = "OK"
	Warn    Verdict = "WARN"    // Weir runs, but needs attention
	Fail    Verdict = "FAIL"    // Weir lacks a requirement
	Unknown Verdict = "UNKNOWN" // no permission to check, or no response
)

// Check is the result for one requirement.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	// Do is the suggested fix.
	Do string `json:"do,omitempty"`
}

// Report holds the results of all checks.
type Report struct {
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`
}

// Counts counts the checks with a verdict.
func (r Report) Counts(v Verdict) (n int) {
	for _, c := range r.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Checked reports whether the API server responded.
func (r Report) Checked() bool { return len(r.Checks) > 0 && r.Checks[0].Verdict != Unknown }

// JSON writes JSON.
func (r Report) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Text writes a table.
func (r Report) Text(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.verdict())
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, c := range r.Checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Verdict, words.Sentence(c.Name, words.MaxMessage), words.Sentence(c.Why, words.MaxMessage))
		if c.Do != "" {
			fmt.Fprintf(w, "\t\tWhat helps: %s\n", words.Sentence(c.Do, words.MaxMessage))
		}
	}
	w.Flush()
	_, err := io.WriteString(out, b.String())
	return err
}

func (r Report) verdict() string {
	fails, warns, unknown := r.Counts(Fail), r.Counts(Warn), r.Counts(Unknown)
	if fails+warns+unknown == 0 {
		return fmt.Sprintf("All is well: %s.", words.Count(len(r.Checks), "check"))
	}
	return fmt.Sprintf("%s: %d fail, %d warn, %d not known.", words.Count(len(r.Checks), "check"), fails, warns, unknown)
}
