// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// What is being deleted is not level: it is looked at again, until it is gone and made anew.
func TestWhatIsBeingDeletedIsUnderWay(t *testing.T) {
	for shown, want := range map[armnetwork.ProvisioningState]lb.Provisioning{
		armnetwork.ProvisioningStateDeleting:  lb.Updating,
		armnetwork.ProvisioningStateUpdating:  lb.Updating,
		armnetwork.ProvisioningStateSucceeded: lb.Succeeded,
		armnetwork.ProvisioningStateFailed:    lb.Failed,
	} {
		if got := provisioning(shown); got != want {
			t.Errorf("%s is taken for %s, want %s", shown, got, want)
		}
	}
}
