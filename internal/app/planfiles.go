// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube"
)

// mostBroken bounds how many broken objects are told of.
const mostBroken = 20

// manyErrors is one error of all of them, each in a line of its own.
func manyErrors(all []error) error {
	if more := len(all) - mostBroken; more > 0 {
		all = append(all[:mostBroken:mostBroken], fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// checkAtServer has the API server check the objects of the files, which it does not keep.
func (p *planning) checkAtServer(ctx context.Context) (refused []error, err error) {
	rc, _, err := clusterConfig(p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+Version
	at, err := client.New(rc, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	if refused, err = p.objects.Checked(ctx, at); err != nil {
		return nil, fmt.Errorf("--server-dry-run: API server %s: %w", rc.Host, err)
	}
	return refused, nil
}
