// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
)

// 200 Provisions that retry every second stay within the write limit and do not delay a neighbor's.
func TestProvisionsThatFailAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		retries := int32(1_000_000)
		policy := v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1s", Factor: "1", MaxInterval: "1s"}
		var objects []client.Object
		for n := range many + 1 {
			of := newRemote(n, nodeWaitStep, policy, true)
			if n == many {
				for _, o := range of {
					o.SetNamespace("other")
				}
			}
			objects = append(objects, of...)
		}
		w := newTestEnv(t, http.NotFoundHandler(), objects...)
		w.one = make(chan struct{}, maxConcurrentReconciles)
		w.dials = func() error { return errors.New("connection refused") }
		neighbor, _ := newProvision("other", "edge-200")
		w.runWhile(func() {
			for n := range many {
				key, _ := newProvision("shop", objects[2*n].GetName())
				w.queueProvision(key)
			}
			time.Sleep(30 * time.Second) // until the burst is used up
			w.mu.Lock()
			before := w.writes
			w.mu.Unlock()
			began, during := time.Now(), time.Minute
			time.Sleep(during / 2)
			requested := time.Now()
			if _, err := w.room.reconcile(t.Context(), reconcile.Request{NamespacedName: neighbor}); err != nil {
				t.Error(err)
			}
			if elapsed := time.Since(requested); elapsed > time.Second || w.getProvision(neighbor).Status.State != v1alpha1.ProvisionRunning {
				t.Errorf("after %s a neighbor is %+v", elapsed, w.getProvision(neighbor).Status.State)
			}
			time.Sleep(during / 2)
			w.mu.Lock()
			rate := float64(w.writes-before) / time.Since(began).Seconds()
			w.mu.Unlock()
			t.Logf("%.1f writes per second", rate)
			if rate > maxWrites+1 || rate < 1 {
				t.Errorf("%.1f writes per second, want %d at most", rate, maxWrites)
			}
		})
	})
}

// Repeated retry requests start no attempt within the minimum interval.
func TestRetryNowWithinTheMinimum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t, http.NotFoundHandler(), newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{}, true)...)
		w.dials = func() error { return errors.New("connection refused") }
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() {
			w.queueProvision(key)
			began := time.Now()
			for range 100 {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.RetryNowAnnotation, time.Now().Format(time.RFC3339Nano))
				if err := w.here.Patch(t.Context(), w.getProvision(key), client.RawPatch(types.MergePatchType, patch)); err != nil {
					t.Error(err)
				}
				w.queueProvision(key)
				time.Sleep(time.Second)
			}
			if n, limit := w.getProvision(key).Status.AttemptNumber, int64(time.Since(began)/(10*time.Second))+1; n > limit || n < limit/2 {
				t.Errorf("%d attempts within %s, want %d at most", n, time.Since(began), limit)
			}
		})
	})
}
