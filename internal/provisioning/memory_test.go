// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
)

// maxWaitingBytes is for the object and its probe state.
const maxWaitingBytes = 2 << 10

// A Provision with a failed attempt, as an informer keeps it.
func TestMemoryOfProvisionsThatWait(t *testing.T) {
	var text []byte
	synctest.Test(t, func(t *testing.T) {
		target := &faultyTarget{fault: respondStatus(403)}
		w := newTestEnv(t, target, newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{InitialInterval: "1h", MaxInterval: "1h"}, true)...)
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() { w.queueProvision(key); time.Sleep(5 * time.Minute) })
		p := w.getProvision(key)
		p.UID, p.ManagedFields = "5a1c86b6-8f3c-4a0e-9b3a-2f6d3c1e7a90", nil
		var err error
		if text, err = json.Marshal(p); err != nil || p.Status.State != v1alpha1.ProvisionWaiting {
			t.Fatal(err, p.Status)
		}
	})
	const many = 1000
	cached := map[string]any{}
	k, at := newProbeTracker(nil), time.Now()
	before := heapInUse()
	for n := range many {
		p := &v1alpha1.Provision{}
		if err := json.Unmarshal(text, p); err != nil {
			t.Fatal(err)
		}
		objects.StripProvision(p)
		cached[fmt.Sprint("shop/edge-", n)] = p
		key, _ := newProvision("shop", fmt.Sprint("edge-", n))
		k.states[key] = policy.ProbeState{Number: 1, Since: at, Count: 1, Next: at}
	}
	each := int64(heapInUse()-before) / many
	t.Logf("%d bytes each, of %d bytes of JSON", each, len(text))
	if each > maxWaitingBytes {
		t.Errorf("%d bytes each, want %d at most", each, maxWaitingBytes)
	}
	runtime.KeepAlive(cached)
	runtime.KeepAlive(k)
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
