// SPDX-License-Identifier: Apache-2.0

package scenario

func doSlow(s *Stage, a *argReader) (string, error) {
	action := map[string]any{"delay": a.durationArg("by", 0).String()}
	return "", s.addFaultFrom(a, s.parseLockMatch(a, "any"), action)
}
