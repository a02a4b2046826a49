// SPDX-License-Identifier: Apache-2.0

package nodes

// How long news wait, for tests.
const (
	NewsGather = newsGather
	NewsAgain  = newsAgain
)

// Bulletins counts what is kept of those who were not told yet.
func (a *AdminStates) Bulletins() int { return len(a.bulletins) }
