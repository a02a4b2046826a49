// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// flaky is an API server that rejects SetFinalizer a number of times.
type flaky struct {
	*statusAPI
	fails, asked int
}

// SetFinalizer implements API.
func (f *flaky) SetFinalizer(_ context.Context, p *v1alpha1.BackendPool, _ bool) (*v1alpha1.BackendPool, error) {
	if f.asked++; f.asked <= f.fails {
		return nil, errors.New("500")
	}
	return p, nil
}

// A BackendPool that never took its pool is deleted, and the API server fails once.
func TestAFinalizerThatCouldNotBeTakenOffIsTakenOffLater(t *testing.T) {
	d := atDesk(t)
	api := &flaky{statusAPI: d.api, fails: 1}
	d.cluster.startsAnew(api)
	d.reconciles()
	d.becomes(func(p *v1alpha1.BackendPool) { p.DeletionTimestamp = new(metav1.Now()) })
	for range 5 {
		_, err := d.reconciled(t, d.p)
		if err == nil || errors.Is(err, ErrGone) { // the work queue drops it
			break
		}
	}
	if api.asked != 2 {
		t.Error("the finalizer stays")
	}
}
