// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"weir.dev/weir/test/referencepage"
)

// The reference documents client-go's measured behavior for each fault.
func TestReferenceShowsWhatClientGoDoes(t *testing.T) {
	t.Parallel()
	page := measured(t)
	if t.Failed() {
		return // a partial run
	}
	referencepage.Shows(t, "../../docs/reference/retries.md", "table", page)
}

// measured runs all cells in parallel and renders them.
func measured(t *testing.T) string {
	t.Helper()
	cells := make([][]string, len(rows))
	var mu sync.Mutex
	t.Run("cells", func(t *testing.T) {
		for i, r := range rows {
			cells[i] = make([]string, len(ways))
			for j, d := range ways {
				cells[i][j] = "–"
				if !r.meets(d) {
					continue
				}
				t.Run(r.name+"/"+d.name, func(t *testing.T) {
					t.Parallel()
					got, _ := r.measure(t, d)
					mu.Lock()
					defer mu.Unlock()
					cells[i][j] = got.String()
				})
			}
		}
	})
	var page strings.Builder
	page.WriteString("\n| answer |")
	for _, d := range ways {
		fmt.Fprintf(&page, " %s |", d.name)
	}
	page.WriteString("\n|---|" + strings.Repeat("---|", len(ways)) + "\n")
	for i, r := range rows {
		fmt.Fprintf(&page, "| %s | %s |\n", r.name, strings.Join(cells[i], " | "))
	}
	page.WriteByte('\n')
	return page.String()
}
