// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

// What is being deleted is not level: it is looked at again, until it is gone and made anew.
func TestWhatIsBeingDeletedIsUnderWay(t *testing.T) {
	for shown, want := range map[string]lb.Provisioning{
		"Deleting":  lb.Updating,
		"Updating":  lb.Updating,
		"Succeeded": lb.Succeeded,
		"Failed":    lb.Failed,
	} {
		if got := provisioning(shown); got != want {
			t.Errorf("%s is taken for %s, want %s", shown, got, want)
		}
	}
}
