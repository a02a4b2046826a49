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

// Verdict is what a check comes to.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "OK"
	Warn    Verdict = "WARN"    // Weir runs, and somebody should look
	Fail    Verdict = "FAIL"    // Weir lacks what it needs
	Unknown Verdict = "UNKNOWN" // whoever asks may not know, or nobody answers
)

// Check is one thing that Weir needs.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`
	// Do is what helps; empty of what is well.
	Do string `json:"do,omitempty"`
}

// Report is what all checks found.
type Report struct {
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`
}

// Counts says how many checks came to a verdict.
func (r Report) Counts(v Verdict) (n int) {
	for _, c := range r.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Checked reports whether the API server could be asked.
func (r Report) Checked() bool { return len(r.Checks) > 0 && r.Checks[0].Verdict != Unknown }

// JSON prints the report for programs.
func (r Report) JSON(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Text prints the report for people.
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
