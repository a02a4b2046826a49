// SPDX-License-Identifier: Apache-2.0

package offline_test

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/internal/offline"
)

// A second JSON object without a separator is an error and not ignored.
func TestTextThatFollowsAnObject(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`
	for text, fails := range map[string]bool{object: false, object + "\n---\n" + object: false, object + "\n" + object: true, object + "\n...\n" + object: true} {
		var o offline.Objects
		if err := errors.Join(o.DecodeFile("nodes.json", strings.NewReader(text))...); errors.Is(err, offline.ErrTrailingText) != fails {
			t.Errorf("%q: %v", text, err)
		}
	}
}
