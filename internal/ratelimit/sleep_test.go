// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	for name, tt := range map[string]struct {
		d, cancelled time.Duration // cancelled is when the context is done; 0 is never
		took         time.Duration
		err          error
	}{
		"it is over":             {time.Hour, 0, time.Hour, nil},
		"the context is done":    {time.Hour, time.Minute, time.Minute, context.Canceled},
		"it is not positive":     {-time.Hour, 0, 0, nil},
		"it is over before that": {time.Minute, time.Hour, time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if tt.cancelled > 0 {
					time.AfterFunc(tt.cancelled, cancel)
				}
				begun := time.Now()
				if err := Sleep(ctx, tt.d); !errors.Is(err, tt.err) || time.Since(begun) != tt.took {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(begun), tt.err, tt.took)
				}
				cancel()
			})
		})
	}
}
