// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/app"
)

// The removed flag is an error that names its replacement; help does not list it.
func TestTheControllerDoesNotProvision(t *testing.T) {
	for _, flag := range []string{"--provisioning", "--provisioning=true", "--provisioning=false"} {
		root := newRoot()
		root.SetArgs([]string{"controller", flag})
		err := root.ExecuteContext(t.Context())
		if _, usage := err.(*app.UsageError); !usage || !strings.Contains(err.Error(), "run weir-provisioner") || !strings.Contains(err.Error(), "docs/guide/upgrade.md") { //nolint:errorlint // it is returned as it is
			t.Errorf("%s: %v", flag, err)
		}
		if code := run([]string{"controller", flag}); code != 2 {
			t.Errorf("%s: exit code %d, want 2", flag, code)
		}
	}
	if usage := newController().Flags().FlagUsages(); strings.Contains(usage, "provisioning") {
		t.Errorf("help offers it:\n%s", usage)
	}
}
