// SPDX-License-Identifier: Apache-2.0

package scenario

import "time"

func doClock(s *Stage, a *reader) (string, error) {
	d, err := time.ParseDuration(a.word("duration"))
	if err != nil {
		a.complain("%v", err)
	}
	if err := a.err(); err != nil {
		return "", err
	}
	s.sleep(d)
	return "", nil
}
