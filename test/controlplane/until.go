// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"
	"time"
)

// Until asks every 20 ms until the answer is "", and fails the test with the last one
// after 40 s.
func Until(t testing.TB, ask func() (missing string)) {
	t.Helper()
	Eventually(t, "it", 40*time.Second, func() error {
		if missing := ask(); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// Eventually asks every 20 ms until the answer is nil, and fails the test with the last one
// once that has taken too long.
func Eventually(t testing.TB, what string, most time.Duration, ask func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s, still after %s: %v", what, most, err)
		}
	}
}
