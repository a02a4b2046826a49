// SPDX-License-Identifier: Apache-2.0

package nodes

// Delays for tests.
const (
	NewsGather = newsGather
	NewsAgain  = newsAgain
)

// Bulletins returns the number of bulletins.
func (a *AdminStates) Bulletins() int { return len(a.bulletins) }
