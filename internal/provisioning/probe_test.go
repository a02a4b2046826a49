// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

var nodeWaitStep = v1alpha1.ProvisionStep{Name: "step", Wait: &v1alpha1.WaitStep{APIVersion: "v1", Kind: "Node", Name: "a"}}

// When an unreachable target answers again, the next attempt starts within two minutes.
func TestATargetThatAnswersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &fakeServer{objects: map[string]map[string]any{"/api/v1/nodes/a": {"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "a"}}}}
		retries := int32(3)
		w := newTestEnv(t, target, newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1h", MaxInterval: "1h"}, true)...)
		var away atomic.Bool
		away.Store(true)
		w.dials = func() error {
			if away.Load() {
				return errors.New("no route to host")
			}
			return nil
		}
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() {
			w.queueProvision(key)
			time.Sleep(30 * time.Second)
			before := w.requestCounts()
			time.Sleep(20 * time.Minute)
			if current := w.requestCounts(); current != before || before.attempts != 1 {
				t.Errorf("while it is away: %+v, then %+v", before, current)
			}
			if answered, probes := w.room.ProbeCounts(); answered != 0 || probes < 13 || probes > 20 {
				t.Errorf("%d probes in 20 minutes, %d answered", probes, answered)
			}
			away.Store(false)
			time.Sleep(2 * time.Minute)
		})
		if status := w.getProvision(key).Status; status.State != v1alpha1.ProvisionSucceeded || status.Attempts != 2 || !slices.Contains(w.told, "TargetAnswers") {
			t.Errorf("%s after %d attempts: %v", status.State, status.Attempts, w.told)
		}
		answered, _ := w.room.ProbeCounts()
		w.room.probes.mu.Lock()
		defer w.room.probes.mu.Unlock()
		if states, under := w.room.probes.states, w.room.probes.running; answered != 1 || len(states) > 0 || len(under) > 0 {
			t.Errorf("%d answered; %v, under way %v", answered, states, under)
		}
	})
}

// A reachable target that rejects the attempt is not probed, nor is this cluster.
func TestATargetThatIsNotAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &faultyTarget{fault: respondStatus(403)}
		w := newTestEnv(t, target, newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{InitialInterval: "1h", MaxInterval: "1h"}, true)...)
		key, _ := newProvision("shop", "edge-0")
		w.runWhile(func() {
			w.queueProvision(key)
			time.Sleep(59 * time.Minute)
		})
		if answered, away := w.room.ProbeCounts(); answered != 1 || away != 0 || w.getProvision(key).Status.Attempts != 1 {
			t.Errorf("%d probes answered, %d not; %d attempts", answered, away, w.getProvision(key).Status.Attempts)
		}
	})
	_, p := newProvision("shop", "edge")
	p.Status.Target = "https://edge.example.com:6443/x"
	if _, _, ok := probeAddress(p); ok {
		t.Error("this cluster is knocked at")
	}
	p.Spec.Target.KubeconfigSecret = &v1alpha1.KubeconfigSecret{}
	if address, host, ok := probeAddress(p); !ok || address != "edge.example.com:6443" || host != "edge.example.com" {
		t.Errorf("probes at %s, %s", address, host)
	}
	if err := (dialPolicy{}).checkReachable(t.Context(), "127.0.0.1:1", "localhost"); err == nil || !strings.Contains(err.Error(), "is no target") {
		t.Errorf("an address of Weir's own: %v", err)
	}
}

type counts struct {
	requests, asked int
	attempts        int32
}

func (e *testEnv) requestCounts() counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return counts{e.requests, e.asked, e.getProvision(client.ObjectKey{Namespace: "shop", Name: "edge-0"}).Status.Attempts}
}

// 1,000 waiting Provisions send no request to an API server, and at most eight targets are probed
// at once.
func TestAThousandProvisionsThatWait(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	synctest.Test(t, func(t *testing.T) {
		var objects []client.Object
		for n := range 1000 {
			of := newRemote(n, nodeWaitStep, v1alpha1.RetryPolicy{InitialInterval: "1h", MaxInterval: "1h"}, true)
			p := of[0].(*v1alpha1.Provision)
			for _, o := range of {
				o.SetNamespace(fmt.Sprint("shop-", n/10))
			}
			p.Status = v1alpha1.ProvisionStatus{
				State: v1alpha1.ProvisionWaiting, Job: desiredDigest(p), Attempts: 1, AttemptNumber: 1,
				WaitingSince: microTime(time.Now()), Target: "https://edge.example.com",
			}
			objects = append(objects, of...)
		}
		w := newTestEnv(t, &fakeServer{}, objects...)
		var side, limit int
		probes := func(n int) {
			w.mu.Lock()
			side += n
			limit = max(limit, side)
			w.mu.Unlock()
		}
		w.dials = func() error { // no answer
			probes(1)
			time.Sleep(10 * time.Second)
			probes(-1)
			return errors.New("no answer")
		}
		w.runWhile(func() {
			for _, o := range objects {
				if _, ok := o.(*v1alpha1.Provision); ok {
					w.queueProvision(client.ObjectKeyFromObject(o))
				}
			}
			time.Sleep(time.Minute) // until every status is written once
			w.mu.Lock()
			before := w.requests
			w.requests = 0
			w.mu.Unlock()
			time.Sleep(20 * time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			if before != 2000 || w.requests != 0 || w.asked != 0 {
				t.Errorf("%d requests before, %d in 20 minutes, %d to targets", before, w.requests, w.asked)
			}
		})
		if _, away := w.room.ProbeCounts(); away == 0 || away > 8*6*21 || limit != maxProbes {
			t.Errorf("%d probes, %d side by side", away, limit)
		}
	})
}
