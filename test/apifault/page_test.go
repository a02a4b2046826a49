// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the reference")

// The reference shows what client-go does with each fault, as it was measured on both
// sides of the proxy.
func TestReferenceShowsWhatClientGoDoes(t *testing.T) {
	t.Parallel()
	const file = "../../docs/reference/retries.md"
	const begin, end = "<!-- table: begin, rendered by go test ./test/apifault -run Reference -rewrite -->\n", "<!-- table: end -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(raw), begin)
	shown, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has lost its markers", file)
	}
	page := measured(t)
	if t.Failed() {
		return
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(head+begin+page+end+tail), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(shown, page); diff != "" {
		t.Errorf("%s differs from what is measured (-page +measured); run go test ./test/apifault -run Reference -rewrite and review:\n%s", file, diff)
	}
}

// measured runs all cells side by side and renders them.
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

// until waits until check returns "", and fails with what it returned last.
func until(t *testing.T, check func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(40 * time.Second)
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("still after 40 s: " + missing)
		}
	}
}
