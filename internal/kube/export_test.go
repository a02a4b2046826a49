// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

// ErrGone is what ApplyStatus returns for a BackendPool that is not there.
var ErrGone = errGone

// ApplyStatus writes a status to a real API server that showed this version last.
func ApplyStatus(ctx context.Context, api client.Client, ref poolupdate.Ref, version string, status *v1alpha1.BackendPoolStatus) error {
	_, err := (&statuses{reader: api, writer: api.Status()}).apply(ctx, ref, version, status)
	return err
}
