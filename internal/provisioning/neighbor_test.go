// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// A target that is slow to list its kinds holds memory for at most a minute while a neighbor waits.
func TestKindsHoldNoMemoryOfANeighbor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if req.URL.Path != "/version" {
				select {
				case <-req.Context().Done():
				case <-time.After(requestTimeout - time.Second):
				}
				http.NotFound(rw, req)
				return
			}
			fmt.Fprint(rw, "{}")
		})
		step := v1alpha1.ProvisionStep{Name: "objects", Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: "large"}}}}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "large"}, Data: map[string]string{}}
		for n := range 12 {
			cm.Data[fmt.Sprint("text-", n)] = fmt.Sprintf("{apiVersion: g%d.example.com/v1, kind: A, metadata: {name: a}, data: {a: %s}}", n, strings.Repeat("x", maxFreeBytes/4))
		}
		w := newTestEnv(t, slow, append(newRemote(0, step, v1alpha1.RetryPolicy{AttemptTimeout: "24h"}, true), cm)...)
		w.room.memory = NewFairBudget(maxDecodeMemory+100<<10, maxShare) // room for only a few such Provisions
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() {
			w.queueProvision(key)
			time.Sleep(10 * time.Second)
			began := time.Now()
			hold, err := w.room.memory.Acquire(t.Context(), "neighbor", maxDecodeMemory)
			if elapsed := time.Since(began); err != nil || elapsed > turnTime+5*time.Second {
				t.Errorf("a neighbor waits for %s, %v; the attempt is %s", elapsed, err, w.getProvision(key).Status.State)
			}
			if err == nil {
				hold.Release()
			}
		})
	})
}
