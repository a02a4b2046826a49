// SPDX-License-Identifier: Apache-2.0

package fault

// Exhausted reports whether the layer below has spent its retries on it. That says nothing of
// what was asked for, so nobody tries to find out what of it is at fault.
func (f *Fault) Exhausted() bool { return f.Reason == "sdk_exhausted" || f.Reason == "unreachable" }
