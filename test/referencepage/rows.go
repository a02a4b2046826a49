// SPDX-License-Identifier: Apache-2.0

package referencepage

import (
	"fmt"
	"slices"
	"strings"
)

// Rows are rows of a table. Rows with equal cells are one row, which lists their names.
type Rows struct {
	cells []string
	names map[string][]string
}

// Add adds a row. The cells are those after the name, separated by " | ".
func (r *Rows) Add(name, cells string) {
	if r.names == nil {
		r.names = map[string][]string{}
	}
	if !slices.Contains(r.cells, cells) {
		r.cells = append(r.cells, cells)
	}
	r.names[cells] = append(r.names[cells], name)
}

func (r *Rows) String() string {
	var b strings.Builder
	for _, cells := range r.cells {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(r.names[cells], "; "), cells)
	}
	return b.String()
}
