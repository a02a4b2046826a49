// SPDX-License-Identifier: Apache-2.0

package scenario

import "time"

func doClock(s *Stage, a *argReader) (string, error) {
	d, err := time.ParseDuration(a.wordArg("duration"))
	if err != nil {
		a.addError("%v", err)
	}
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.sleepFor(d)
	return "", nil
}
