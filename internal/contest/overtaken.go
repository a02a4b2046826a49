// SPDX-License-Identifier: Apache-2.0

package contest

import "weir.dev/weir/internal/fault"

// Twice has a try read, plan and write, and once more if somebody else wrote in between: that
// is everyday, and no failure to tell of. A second 412 is one. What a try finds in the midst of
// another's write ends it as always. overtaken is told of a second try, and whether it went well.
func Twice(try func() error, overtaken func(settled bool)) error {
	err := try()
	if f := fault.From(err); !f.Overtaken() || !f.RetryAt.IsZero() {
		return err
	}
	err = try()
	overtaken(err == nil)
	return err
}
