// SPDX-License-Identifier: Apache-2.0

// Package patient fails tests whose requests violate Azure's rules: a request before a Retry-After
// elapsed, or a body that violates Azure's OpenAPI schema. Every test with an emulator uses it.
package patient

import (
	"errors"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// Watched fails the test at its end if it sent such a request.
func Watched(t testing.TB, emu *armemu.Emulator) *armemu.Emulator {
	t.Helper()
	t.Cleanup(func() {
		if err := Kept(emu); err != nil {
			t.Errorf("requests that Azure does not allow:\n%v", err)
		}
	})
	return emu
}

// Kept is for harnesses without a test; the error lists the requests.
func Kept(emu *armemu.Emulator) error {
	var all []error
	for _, call := range emu.EarlyCalls() {
		all = append(all, errors.New(call))
	}
	for _, v := range emu.Violations() {
		all = append(all, errors.New("a body breaks the schema: "+v.Describe()))
	}
	return errors.Join(all...)
}
