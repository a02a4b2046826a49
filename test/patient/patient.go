// SPDX-License-Identifier: Apache-2.0

// Package patient fails tests in which somebody called an emulated Azure before a
// Retry-After that it had answered. Whoever starts an emulator in a test has it watched.
package patient

import (
	"errors"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// Watched fails the test when it ends if somebody came too early.
func Watched(t testing.TB, emu *armemu.Emulator) *armemu.Emulator {
	t.Helper()
	t.Cleanup(func() {
		if err := Kept(emu); err != nil {
			t.Errorf("called before the Retry-After that the resource had answered:\n%v", err)
		}
	})
	return emu
}

// Kept is for what has no test of its own; the error names those who came too early.
func Kept(emu *armemu.Emulator) error {
	var all []error
	for _, call := range emu.Hasty() {
		all = append(all, errors.New(call))
	}
	return errors.Join(all...)
}
