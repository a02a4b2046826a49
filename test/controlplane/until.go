// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"testing"
	"time"
)

// WaitUntil polls until ask returns "" and fails the test with the last answer after three minutes.
func WaitUntil(t testing.TB, ask func() (missing string)) {
	t.Helper()
	Eventually(t, "it", 3*time.Minute, func() error {
		if missing := ask(); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// Eventually polls until ask returns nil and fails the test with the last error after the timeout.
// It returns the sum of its pauses, to which the timeout applies, too: on a machine that is busy or stops for a while,
// each poll takes longer.
// The pause grows from 20 ms to 250 ms: polls of parallel tests would otherwise keep the API server busy.
func Eventually(t testing.TB, condition string, limit time.Duration, ask func() error) (waited time.Duration) {
	t.Helper()
	for pause := 20 * time.Millisecond; ; pause = min(pause*5/4, 250*time.Millisecond) {
		err := ask()
		if err == nil {
			return waited
		}
		if waited > limit {
			t.Fatalf("%s, still after %s: %v", condition, limit, err)
		}
		time.Sleep(pause)
		waited += pause
	}
}
