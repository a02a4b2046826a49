// SPDX-License-Identifier: Apache-2.0

package scenario

func doHeal(s *Stage, a *reader) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	return "", s.heal()
}
