// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"os"
	"strings"
	"testing"
)

// The figures of the story are those of the page.
func TestComparisonsQuoteThePage(t *testing.T) {
	page, err := os.ReadFile("../../" + comparisonPage)
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "### `serial`: latency profile `quiet`, 50 % of the quota")
	part, _, _ = strings.Cut(part, "\n### ")
	found := 0
	for _, s := range allSteps(true) {
		if s.compared == nil {
			continue
		}
		found++
		_, row, ok := strings.Cut(part, "\n| "+s.compared.change+" | "+s.compared.weir+" / ")
		row, _, _ = strings.Cut(row, "\n")
		if !ok || !strings.Contains(row, " | "+s.compared.schedule+" | ") {
			t.Errorf("%s has no row with %q", comparisonPage, s.compared)
		}
	}
	if found != 4 {
		t.Errorf("%d steps are compared", found)
	}
}
