// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// flakyAPI is an API server that rejects SetFinalizer a number of times.
type flakyAPI struct {
	*statusAPI
	failures, requests int
}

// SetFinalizer implements API.
func (f *flakyAPI) SetFinalizer(_ context.Context, p *v1alpha1.BackendPool, _ bool) (*v1alpha1.BackendPool, error) {
	if f.requests++; f.requests <= f.failures {
		return nil, errors.New("500")
	}
	return p, nil
}

// A BackendPool that never took its pool is deleted, and the API server fails once.
func TestAFinalizerThatCouldNotBeTakenOffIsTakenOffLater(t *testing.T) {
	d := newFixture(t)
	api := &flakyAPI{statusAPI: d.api, failures: 1}
	d.cluster.restartProcess(api)
	d.reconcileNow()
	d.updatePool(func(p *v1alpha1.BackendPool) { p.DeletionTimestamp = new(metav1.Now()) })
	for range 5 {
		_, err := d.reconcilePool(t, d.p)
		if err == nil || errors.Is(err, metadata.ErrDeleted) { // the work queue drops it
			break
		}
	}
	if api.requests != 2 {
		t.Error("the finalizer stays")
	}
}
