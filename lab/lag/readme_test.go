// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheReadmeQuotesThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/lag.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(page), "### `serial`: latency profile `quiet`, 50 % of the quota")
	part, _, _ = strings.Cut(part, "\n### ")
	_, table, quoted := strings.Cut(string(readme), "| | model of cloud-provider-azure | Weir |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found || !quoted {
		t.Fatalf("the page has the table: %t; the README: %t", found, quoted)
	}
	for row := range strings.Lines(table) {
		got := regexp.MustCompile(`^\| (.*) \| (.*) \| (.*) \|`).FindStringSubmatch(row)
		if got == nil {
			t.Fatalf("a row is %q", row)
		}
		var cells []string
		for line := range strings.Lines(part) {
			if strings.HasPrefix(line, "| "+got[1]+" |") {
				cells = strings.Split(line, " | ")
			}
		}
		if len(cells) < 6 || !strings.HasPrefix(cells[1], got[3]+" / ") || cells[4] != got[2] {
			t.Errorf("of %s the README says %s and %s, the page %q", got[1], got[2], got[3], cells)
		}
	}
}
