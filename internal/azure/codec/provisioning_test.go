// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

// A pool that is being deleted counts as Updating, so it is read again.
func TestDeletingResourceIsUpdating(t *testing.T) {
	for shown, want := range map[string]lb.Provisioning{
		"Deleting":  lb.Updating,
		"Updating":  lb.Updating,
		"Succeeded": lb.Succeeded,
		"Failed":    lb.Failed,
	} {
		if got := provisioningState(shown); got != want {
			t.Errorf("%s is taken for %s, want %s", shown, got, want)
		}
	}
}
