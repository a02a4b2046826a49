// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
)

func TestReferenceCountsItsTags(t *testing.T) {
	const page = "../../docs/reference/emulator.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("rules.md")
	if err != nil {
		t.Fatal(err)
	}
	counts := tagged(t, string(raw)+"\n"+string(rules))
	var b strings.Builder
	b.WriteString("| | documented | observed | assumed |\n|---|---|---|---|\n")
	for _, row := range []struct{ about, column string }{
		{"Behaviours and permissions", "Is"}, {"Validation rules", "Rule is"}, {"Their error codes", "Code is"},
	} {
		n := counts[row.column]
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", row.about, n[armemu.Documented], n[armemu.Observed], n[armemu.Assumed])
	}
	fmt.Fprintf(&b, "\nBeside these, %d questions are open; the emulator answers each of them either way.\n", len(behavior.AllProperties()))
	referencepage.ExpectSection(t, page, "counts", b.String())
}

// From the columns Is, Rule is and Code is.
func tagged(t *testing.T, page string) map[string]map[armemu.Certainty]int {
	t.Helper()
	counts := map[string]map[armemu.Certainty]int{"Is": {}, "Rule is": {}, "Code is": {}}
	var columns []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			columns = nil
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, ""), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if columns == nil {
			columns = cells
			continue
		}
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		for i, column := range columns {
			if counts[column] == nil || i >= len(cells) {
				continue
			}
			counts[column][leastCertain(t, line, cells[i])]++
		}
	}
	return counts
}

func leastCertain(t *testing.T, line, cell string) armemu.Certainty {
	t.Helper()
	certainties := []armemu.Certainty{armemu.Assumed, armemu.Observed, armemu.Documented}
	if i := slices.IndexFunc(certainties, func(tag armemu.Certainty) bool { return strings.Contains(cell, string(tag)) }); i >= 0 {
		return certainties[i]
	}
	t.Errorf("no tag in %q of %s", cell, line)
	return ""
}
