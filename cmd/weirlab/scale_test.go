// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"weir.dev/weir/lab/scale"
)

// scale --profiles starts the controller in weirlab with the flags that weir gets.
func TestProfiledControllerHasTheFlags(t *testing.T) {
	if err := newProfiledCommand().ParseFlags(append(scale.ControllerFlags("k", "f", "e", "m", "h"), "--profiles-bind-address", "p")); err != nil {
		t.Error(err)
	}
}
