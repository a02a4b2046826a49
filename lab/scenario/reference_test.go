// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"strings"
	"testing"
)

// The documentation lists all verbs and checks.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/reference/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, v := range Verbs() {
		want = append(want, "| `"+strings.TrimSpace(v.Name+" "+strings.ReplaceAll(v.Args, "|", `\|`))+"` | "+v.Does+" |")
	}
	for _, c := range Checks() {
		want = append(want, "| "+c.Name+" | "+c.Says+" |")
	}
	for _, line := range want {
		if !strings.Contains(string(raw), line+"\n") {
			t.Errorf("docs/reference/scenarios.md lacks the line\n%s", line)
		}
	}
	if n := strings.Count(string(raw), "\n| "); n != len(want)+2 {
		t.Errorf("docs/reference/scenarios.md has %d lines in its tables, want %d", n, len(want)+2)
	}
}
