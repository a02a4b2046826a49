// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"testing"
)

func TestAlone(t *testing.T) {
	for text, alone := range map[string]bool{
		"a: b": true, "a: b\n...\n# end\n": true, "---\na: b\n": true, "": true, "# a": true, "{\"a\": 1}\n": true, "a: [": true,
		"{\"a\": 1}\n{\"a\": 2}": false, "{\"a\": 1} x": false, "a: b\n---\nc: d\n": false, "a: b\n...\nc: d\n": false, "a: b\r---\rc: d": false,
	} {
		if err := checkSingleDocument([]byte(text)); (err == nil) != alone || err != nil && !errors.Is(err, ErrTrailingText) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
