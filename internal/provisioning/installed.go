// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// ErrNotInstalled means the cluster lacks the CRDs or roles for provisioning.
var ErrNotInstalled = errors.New("apply config/crd and config/provisioning")

// CheckInstalled returns ErrNotInstalled if the watched kinds cannot be listed: their informers would
// never sync, which ends the process.
func CheckInstalled(ctx context.Context, api client.Reader) error {
	for kind, list := range map[string]client.ObjectList{
		"provisions": &v1alpha1.ProvisionList{}, "partners": &v1alpha1.PartnerList{}, "provisioningpolicies": &v1alpha1.ProvisioningPolicyList{},
	} {
		err := api.List(ctx, list, client.Limit(1))
		switch {
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			return fmt.Errorf("%s: %w: %w", kind, ErrNotInstalled, err)
		case err != nil:
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}
