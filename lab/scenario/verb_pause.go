// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"time"
)

func doPause(s *Stage, a *reader) (string, error) {
	paused := !a.flag("end")
	return "", s.askFor(a, func(b *binding) error {
		k := s.pools[b.pool.Key()]
		k.trouble = later(k.trouble, time.Now())
		b.paused = paused
		return nil
	})
}
