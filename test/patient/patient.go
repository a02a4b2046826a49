// SPDX-License-Identifier: Apache-2.0

// Package patient fails tests with requests that violate Azure's rules: a request before a Retry-After
// elapsed, or a body that violates Azure's OpenAPI schema. Every test with an emulator uses it.
package patient

import (
	"errors"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// Watch fails the test at its end if it sent such a request.
func Watch(t testing.TB, emu *armemu.Emulator) *armemu.Emulator {
	t.Helper()
	t.Cleanup(func() {
		if err := CheckRequests(emu); err != nil {
			t.Errorf("requests that Azure does not allow:\n%v", err)
		}
	})
	return emu
}

// CheckRequests is for harnesses without a test; the error lists the requests.
func CheckRequests(emu *armemu.Emulator) error {
	var errs []error
	for _, call := range emu.EarlyCalls() {
		errs = append(errs, errors.New(call))
	}
	for _, v := range emu.Violations() {
		errs = append(errs, errors.New("a body breaks the schema: "+v.Describe()))
	}
	return errors.Join(errs...)
}
