// SPDX-License-Identifier: Apache-2.0

package nodes

// Delays for tests.
const (
	GatherDelay          = gatherDelay
	AdminRecheckInterval = adminRecheckInterval
)

// CountNotices returns the number of bulletins.
func (a *AdminStates) CountNotices() int { return len(a.notices) }
