// SPDX-License-Identifier: Apache-2.0

// Package patient fails tests that make requests that Azure does not allow: one before a
// Retry-After has elapsed, or one with a body that breaks the schema of Azure's OpenAPI. Every
// test that starts an emulator has it watched.
package patient

import (
	"errors"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// Watched fails the test when it ends if it made such a request.
func Watched(t testing.TB, emu *armemu.Emulator) *armemu.Emulator {
	t.Helper()
	t.Cleanup(func() {
		if err := Kept(emu); err != nil {
			t.Errorf("requests that Azure does not allow:\n%v", err)
		}
	})
	return emu
}

// Kept is for harnesses without a test of their own; the error names the requests.
func Kept(emu *armemu.Emulator) error {
	var all []error
	for _, call := range emu.Hasty() {
		all = append(all, errors.New(call))
	}
	for _, v := range emu.Violations() {
		all = append(all, errors.New("a body breaks the schema: "+v.Describe()))
	}
	return errors.Join(all...)
}
