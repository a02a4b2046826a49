// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/poolupdate"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the reference")

// The reference shows the table as it was measured.
func TestReferenceShowsWireCalls(t *testing.T) {
	const file = "../../docs/reference/wire-calls.md"
	const begin, end = "<!-- table: begin, rendered by go test ./internal/azure -run Reference -rewrite -->\n", "<!-- table: end -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(raw), begin)
	shown, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has lost its markers", file)
	}
	var page strings.Builder
	for _, section := range wireTable() {
		section.render(t, &page)
	}
	renderWholes(t, &page)
	page.WriteByte('\n')
	if *rewrite {
		if err := os.WriteFile(file, []byte(head+begin+page.String()+end+tail), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(shown, page.String()); diff != "" {
		t.Errorf("%s differs from what is measured (-page +measured); run go test ./internal/azure -run Reference -rewrite and review:\n%s", file, diff)
	}
}

func (s wireSection) render(t *testing.T, page *strings.Builder) {
	fmt.Fprintf(page, "\n## %s\n\n| answer | code | GET | PUT | poll | result |\n|---|---|---|---|---|---|\n", s.title)
	for _, row := range s.rows {
		cells, code := map[column]string{}, ""
		for _, c := range columns {
			if row.in(c) == notDriven {
				continue
			}
			cell, got := row.measure(t, c)
			cells[c] = cell
			if code == "" && got != fault.CodeOutcomeUnknown {
				code = got
			}
		}
		if strings.Contains(row.name, code) {
			code = ""
		}
		poll := cells[toPoll]
		switch {
		case poll == "" && cells[toSelf] != "":
			poll = "of the pool: " + cells[toSelf]
		case poll != cells[toSelf] && cells[toSelf] != "":
			poll += "; of the pool: " + cells[toSelf]
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", row.title(), code, dash(cells[toGet]), dash(cells[toPut]), dash(poll), dash(cells[toResult]))
	}
}

// title is the row's name, with the status unless it says so itself.
func (r wireRow) title() string {
	status := fmt.Sprint(r.answer.status)
	if r.answer.status == 0 || strings.Contains(r.name, status) || r.ends {
		return r.name
	}
	return status + " " + r.name
}

func dash(cell string) string {
	if cell == "" {
		return "–"
	}
	return cell
}

// measure has a lane meet the answer and tells what it saw: the requests of the first
// attempt, who asks again (A: the API call, L: the lane), and the word.
func (r wireRow) measure(t *testing.T, c column) (cell, code string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		wire := newStaged(r, c)
		throughLanes(t, wire, 3, func(attempt int, report poolupdate.Report) {
			if attempt > 1 {
				return
			}
			n := wire.asked(0)
			cell = fmt.Sprint(n)
			if n > 1 {
				cell += " A"
			}
			if report.Requeued {
				cell += " L"
			}
			word := told(t, report)
			if word == "" {
				word = string(report.Outcome)
			}
			if report.Fault != nil {
				code = report.Fault.Code
			}
			if code == fault.CodeOutcomeUnknown {
				word += "?"
			}
			cell += " " + word
			if f := r.in(c); f.once || f.paced {
				cell += " after " + report.At.Sub(wire.calls[0].at.Add(pollInterval)).String()
			}
			if parked := report.NextEligibleAt.Sub(report.At); parked > 0 {
				cell += ", parked " + parked.String()
			}
		})
	})
	return cell, code
}
