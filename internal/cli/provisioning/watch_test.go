// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// Watch after retry-now ignores the earlier success.
func TestWatchWaitsForWhatWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(metadata.Scheme()).Build(), interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				if p, ok := o.(*v1alpha1.Provision); ok {
					*p = v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{v1alpha1.RetryNowAnnotation: "2"}}}
					p.Status.State, p.Status.LastHandledRetryNowAt = v1alpha1.ProvisionSucceeded, "1"
					if time.Since(began) >= time.Minute {
						p.Status.LastHandledRetryNowAt = "2"
					}
				}
				return nil
			},
		})
		var out bytes.Buffer
		if err := (Command{API: api, Out: &out}).WatchProvision(t.Context(), "edge"); err != nil || time.Since(began) < time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
