// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

// doomed is a process that comes to an end at one of its requests: to this cluster's API server or to the
// target's. Nothing that it asks afterwards is heard.
type doomed struct {
	*whole

	mu       sync.Mutex
	requests int
	at       int // the request at which it ends; 0 is none
	dead     bool
	stop     context.CancelFunc
	applied  int // objects, in the target
}

var errKilled = errors.New("the process is gone")

// asks counts a request, and reports whether it is heard. killed leaves the process no time for anything else.
func (d *doomed) asks(killed bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
	if d.at > 0 && d.requests == d.at {
		d.stop()
		d.dead = killed
		return !killed
	}
	return !d.dead
}

// serve is the target.
func (d *doomed) serve(target *apiServer, killed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !d.asks(killed) {
			resets(w, req)
			return
		}
		if req.Method == http.MethodPatch {
			d.mu.Lock()
			d.applied++
			d.mu.Unlock()
		}
		target.ServeHTTP(w, req)
	}
}

// play provisions two ConfigMaps, with a process that ends at a request, and another one after it. It returns how many requests the
// first one made.
func play(t *testing.T, at int, killed bool) (requests int) {
	synctest.Test(t, func(t *testing.T) {
		none := int32(0)
		step := v1alpha1.ProvisionStep{Name: "objects", Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: "source"}}, Prune: true}}
		objects := append(remote(0, step, v1alpha1.RetryPolicy{Retries: &none}, true), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "source"},
			Data:       map[string]string{"a": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"},
		})
		d, target := &doomed{at: at}, &apiServer{}
		d.whole = newWhole(t, d.serve(target, killed), objects...)
		d.refuse = func(bool) error {
			if d.asks(killed) {
				return nil
			}
			return errKilled
		}
		key, _ := named("shop", "edge-0")
		var ctx context.Context
		ctx, d.stop = context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.room.Run(ctx); close(done) }()
		synctest.Wait()
		d.look(key)
		time.Sleep(2 * time.Minute)
		d.stop()
		<-done
		d.whole.mu.Lock()
		for _, timer := range d.timers {
			timer.Stop()
		}
		d.whole.mu.Unlock()
		d.mu.Lock()
		requests, d.at, d.dead = d.requests, 0, false
		d.mu.Unlock()
		room := New(d.room.Config)
		room.dial, room.attempts.requeue, room.knocks.requeue = d.dial, d.look, d.look
		d.one.Lock() // a look may be under way
		d.room = room
		d.one.Unlock()
		d.runs(func() { d.look(key); time.Sleep(10 * time.Minute) })
		is := d.is(key).Status
		if is.State != v1alpha1.ProvisionSucceeded || is.AttemptNumber != 1 || is.LastAttempt == nil || is.LastAttempt.Number != 1 {
			t.Errorf("ended at request %d, killed %t: %s after %d attempts, last %+v", at, killed, is.State, is.AttemptNumber, is.LastAttempt)
		}
		if len(target.objects) != 2 || d.applied > 4 {
			t.Errorf("ended at request %d, killed %t: the target has %d objects, applied %d times", at, killed, len(target.objects), d.applied)
		}
	})
	return requests
}

// Wherever a process ends, killed or because it leads no more, the next one goes on with the same attempt: none is lost, and none is
// begun twice. There is no other to mend it.
func TestAProcessThatEndsAtAnyRequest(t *testing.T) {
	all := play(t, 0, false)
	if all < 10 {
		t.Fatalf("an attempt makes %d requests", all)
	}
	for at := 1; at <= all; at++ {
		for _, killed := range []bool{true, false} {
			play(t, at, killed)
		}
	}
}
