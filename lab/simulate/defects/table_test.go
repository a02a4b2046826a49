// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// Each defect can be planted: its old text stands in its file, once. And the page that
// people read speaks of each.
func TestTable(t *testing.T) {
	told, err := os.ReadFile("../../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range defects() {
		raw, err := os.ReadFile("../../../" + d.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(raw), d.old); n != 1 || d.old == d.new {
			t.Errorf("%s: %s holds the old text %d times: %q", d.name, d.file, n, d.old)
		}
		if names[d.name] {
			t.Errorf("two defects are called %s", d.name)
		}
		names[d.name] = true
		if !strings.Contains(string(told), "\n| "+d.name+" | ") {
			t.Errorf("%s does not speak of %q: run make defects", page, d.name)
		}
	}
	if len(names) < 22 {
		t.Errorf("%d defects are too few to judge by", len(names))
	}
}
