// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	n, _ := strconv.Atoi(os.Getenv("N"))
	tally := Search{First: uint64(from), Seeds: n, Steps: 40, Jobs: runtime.NumCPU(), Most: 10}.Run(t.Context())
	t.Log(tally.Done, tally.Steps, len(tally.Found))
	by := map[string]int{}
	for _, f := range tally.Found {
		k := f.Outcome.kind()
		if by[k]++; by[k] > 2 {
			t.Log(f.Seed, k)
			continue
		}
		o, plays := Shrink(f.Outcome, Effort{3000, 30 * time.Second})
		t.Errorf("seed %d: %d plays: %s %s\n%s", f.Seed, plays, o.Check, o.How, Script("x", o))
	}
}
