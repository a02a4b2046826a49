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
	page := measureAll(t)
	if t.Failed() {
		return // a partial run
	}
	referencepage.ExpectSection(t, "testdata/client-go.md", "table", page)
}

// measureAll runs all cells in parallel and renders them.
func measureAll(t *testing.T) string {
	t.Helper()
	cells := make([][]string, len(faultRows))
	var mu sync.Mutex
	t.Run("cells", func(t *testing.T) {
		for i, r := range faultRows {
			cells[i] = make([]string, len(requestKinds))
			for j, d := range requestKinds {
				cells[i][j] = "–"
				if !r.applyFault(d) {
					continue
				}
				t.Run(r.name+"/"+d.name, func(t *testing.T) {
					t.Parallel()
					got, _ := r.measureRequest(t, d)
					mu.Lock()
					defer mu.Unlock()
					cells[i][j] = got.String()
				})
			}
		}
	})
	var page strings.Builder
	page.WriteString("\n| answer |")
	for _, d := range requestKinds {
		fmt.Fprintf(&page, " %s |", d.name)
	}
	page.WriteString("\n|---|" + strings.Repeat("---|", len(requestKinds)) + "\n")
	var rows referencepage.Rows
	for i, r := range faultRows {
		rows.Add(r.name, strings.Join(cells[i], " | "))
	}
	page.WriteString(rows.String())
	page.WriteByte('\n')
	return page.String()
}
