// SPDX-License-Identifier: Apache-2.0

// Package sleep waits.
package sleep

import (
	"context"
	"time"
)

// For waits for a time, which is over at once if it is not positive, and returns nil. If the context is done first, it
// returns its error.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
