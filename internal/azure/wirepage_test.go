// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/test/referencepage"
)

// The reference shows the measured table.
func TestReferenceShowsWireCalls(t *testing.T) {
	var page strings.Builder
	for _, section := range wireTable() {
		section.render(t, &page)
	}
	renderWholes(t, &page)
	page.WriteByte('\n')
	referencepage.ExpectSection(t, "testdata/wire-calls.md", "table", page.String())
}

func (s wireSection) render(t *testing.T, page *strings.Builder) {
	fmt.Fprintf(page, "\n## %s\n\n| answer | code | GET | PUT | poll | result |\n|---|---|---|---|---|---|\n", s.title)
	var rows referencepage.Rows
	for _, row := range s.rows {
		cells, code := map[requestKind]string{}, ""
		for _, c := range requestKinds {
			if row.resultIn(c) == notDriven {
				continue
			}
			cell, got := row.measure(t, c)
			cells[c] = cell
			if code == "" && got != armerror.CodeOutcomeUnknown {
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
		rows.Add(row.title(), strings.Join([]string{code, dash(cells[toGet]), dash(cells[toPut]), dash(poll), dash(cells[toResult])}, " | "))
	}
	page.WriteString(rows.String())
}

// title returns the row's name and status.
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

// measure sends the response to a worker and returns the requests of the first attempt, the retry
// layer (A: API call, W: attempt, L: worker), and the code.
func (r wireRow) measure(t *testing.T, c requestKind) (cell, code string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		wire := newStaged(r, c)
		runWorker(t, wire, 3, func(attempt int, report updater.Report) {
			if attempt > 1 {
				return
			}
			n := wire.countRequests(0)
			cell = fmt.Sprint(n)
			switch {
			case report.HadConflict:
				cell += " W"
			case n > 1:
				cell += " A"
			}
			if report.WillRetry {
				cell += " L"
			}
			word := notification(t, report)
			if word == "" {
				word = string(report.Outcome)
			}
			if report.Fault != nil {
				code = report.Fault.Code
			}
			if code == armerror.CodeOutcomeUnknown {
				word += "?"
			}
			cell += " " + word
			if f := r.resultIn(c); f.once || f.paced {
				cell += " after " + report.At.Sub(wire.calls[0].at.Add(pollInterval)).String()
			}
			if parked := report.NextEligibleAt.Sub(report.At); parked > 0 {
				cell += ", parked " + parked.String()
			}
		})
	})
	return cell, code
}
