// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"weir.dev/weir/internal/k8s/metadata"
)

// discoveryTimeout is the timeout of API discovery, the first request: it detects an unresponsive API server
// early without limiting later requests.
const discoveryTimeout = 15 * time.Second

// NewClient returns a client for commands. It sends no request.
func NewClient(rc *rest.Config) (client.Client, error) {
	scheme := metadata.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme),
		appsv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	first := rest.CopyConfig(rc)
	if first.Timeout == 0 || first.Timeout > discoveryTimeout {
		first.Timeout = discoveryTimeout
	}
	hc, err := rest.HTTPClientFor(first)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(first, hc)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	c, err := client.New(rc, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return c, nil
}
