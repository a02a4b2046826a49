// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"
)

func doPause(s *Stage, a *argReader) (string, error) {
	paused := !a.flagArg("end")
	return "", s.changeBackendPool(a, func(b *backendPool) error {
		k := s.pools[b.pool.Key()]
		k.faultEnd = latest(k.faultEnd, time.Now())
		b.isPaused = paused
		return nil
	})
}
