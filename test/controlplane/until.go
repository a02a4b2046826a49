// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"
	"time"
)

// WaitUntil polls every 20 ms until ask returns "" and fails the test with the last answer after 40 s.
func WaitUntil(t testing.TB, ask func() (missing string)) {
	t.Helper()
	Eventually(t, "it", 40*time.Second, func() error {
		if missing := ask(); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// Eventually polls every 20 ms until ask returns nil and fails the test with the last error after
// the timeout.
func Eventually(t testing.TB, what string, limit time.Duration, ask func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s, still after %s: %v", what, limit, err)
		}
	}
}
