// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"time"
)

// Sleep waits for d and returns nil, at once if d is not positive. If ctx is done first, it returns
// its error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
