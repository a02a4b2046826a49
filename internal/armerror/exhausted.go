// SPDX-License-Identifier: Apache-2.0

package armerror

// HasExhaustedRetries reports whether the SDK has used up its retries. Bisecting the request is useless then.
func (f *Fault) HasExhaustedRetries() bool {
	return f.Reason == "sdk_exhausted" || f.Reason == "unreachable"
}
