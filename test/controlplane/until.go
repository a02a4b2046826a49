// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"
	"time"
)

// Until asks every 20 ms until the answer is "", and fails the test with the last one
// after 40 s.
func Until(t *testing.T, ask func() (missing string)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(40 * time.Second)
	for {
		missing := ask()
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
