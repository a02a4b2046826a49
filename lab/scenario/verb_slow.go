// SPDX-License-Identifier: Apache-2.0

package scenario

func doSlow(s *Stage, a *reader) (string, error) {
	action := map[string]any{"delay": a.duration("by", 0).String()}
	return "", s.arm(a, s.whereLocked(a, "any"), action)
}
