// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// crashingProcess is a process that ends at its n-th API request. Later requests are dropped.
type crashingProcess struct {
	*testEnv

	mu       sync.Mutex
	requests int
	at       int // request at which the process ends; 0 means never
	dead     bool
	stop     context.CancelFunc
	applied  int
}

var errProcessEnded = errors.New("the process is gone")

// countRequest counts a request and reports whether it is served. killed ends the process at once.
func (c *crashingProcess) countRequest(killed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if c.at > 0 && c.requests == c.at {
		c.stop()
		c.dead = killed
		return !killed
	}
	return !c.dead
}

func (c *crashingProcess) serve(target http.Handler, killed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !c.countRequest(killed) {
			resetConnection(w, req)
			return
		}
		if req.Method == http.MethodPatch {
			c.mu.Lock()
			c.applied++
			c.mu.Unlock()
		}
		target.ServeHTTP(w, req)
	}
}

type restartCase struct {
	steps   []v1alpha1.ProvisionStep
	retries int32
	objects func(*testing.T) []client.Object
	target  http.Handler
	// meanwhile runs five seconds after the first reconcile.
	meanwhile func(*crashingProcess, types.NamespacedName)
	state     string // final state; empty means Succeeded
	most      int32  // max attempts; 0 means exactly one
	made      func() error
	// done is the number of target writes when the step was recorded as done; 0 if it was not.
	done int
}

func newManifests(*testing.T) []client.Object {
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "source"},
		Data:       map[string]string{"a": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"},
	}}
}

func restartCases() map[string]func() *restartCase {
	manifests := v1alpha1.ProvisionStep{Name: "objects", Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: "source"}}, Prune: true}}
	has := func(target *fakeServer, want int) func() error {
		return func() error {
			if len(target.objects) != want {
				return fmt.Errorf("the target has %d objects, want %d", len(target.objects), want)
			}
			return nil
		}
	}
	return map[string]func() *restartCase{
		"manifests": func() *restartCase {
			target := &fakeServer{}
			return &restartCase{steps: []v1alpha1.ProvisionStep{manifests}, objects: newManifests, target: target, made: has(target, 2)}
		},
		"manifests, and then a wait": func() *restartCase {
			target := &fakeServer{}
			wait := v1alpha1.ProvisionStep{Name: "ready", Wait: &v1alpha1.WaitStep{APIVersion: "v1", Kind: "Node", Name: "edge"}}
			return &restartCase{
				steps: []v1alpha1.ProvisionStep{manifests, wait}, objects: newManifests, target: target, made: has(target, 3),
				meanwhile: func(*crashingProcess, types.NamespacedName) {
					target.mu.Lock()
					defer target.mu.Unlock()
					if target.objects == nil {
						target.objects = map[string]map[string]any{}
					}
					target.objects["/api/v1/nodes/edge"] = map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "edge"}}
				},
			}
		},
		"a chart": func() *restartCase {
			target := &fakeServer{}
			return &restartCase{
				steps: []v1alpha1.ProvisionStep{{Name: "chart", Helm: &v1alpha1.HelmStep{Chart: v1alpha1.KeySource{ConfigMap: "chart", Key: "shop.tgz"}, ReleaseName: "edge", Namespace: "far", Prune: true}}},
				objects: func(t *testing.T) []client.Object {
					return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chart"}, BinaryData: map[string][]byte{
						"shop.tgz": newChart(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {random: {{ randAlpha 8 }}}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"),
					}}}
				},
				target: target, made: has(target, 2),
			}
		},
		"a Job": func() *restartCase { return jobCase(0) },
		"a Job that fails, and retries are cancelled": func() *restartCase {
			e := jobCase(3)
			e.retries, e.state, e.most = 3, v1alpha1.ProvisionCancelled, 1
			e.meanwhile = func(d *crashingProcess, key types.NamespacedName) {
				d.updateProvision(key, func(p *v1alpha1.Provision) error {
					p.Annotations = map[string]string{v1alpha1.CancelAnnotation: time.Now().Format(time.RFC3339Nano)}
					return d.here.Update(d.t.Context(), p)
				})
				d.queueProvision(key)
			}
			return e
		},
	}
}

func jobCase(code int32) *restartCase {
	target := &jobCluster{runs: []podRun{{takes: 20 * time.Second, code: code}}}
	return &restartCase{
		steps: []v1alpha1.ProvisionStep{{Name: "fetch", Job: &v1alpha1.JobStep{Image: "example.com/fetch"}}}, target: target,
		objects: func(*testing.T) []client.Object { return nil },
		made: func() error {
			target.mu.Lock()
			defer target.mu.Unlock()
			if target.made > 1 || target.made == 0 && code == 0 || target.maxAtWork > 1 {
				return fmt.Errorf("%d Jobs were made, and %d pods at work at a time", target.made, target.maxAtWork)
			}
			return nil
		},
	}
}

// runCase runs a process that ends at a request, then another one with a clock offset. It returns the
// first one's number of requests.
func (r *restartCase) runCase(t *testing.T, at int, killed bool, ahead time.Duration) (requests int) {
	synctest.Test(t, func(t *testing.T) {
		if r.retries == 0 && ahead > 0 {
			r.retries, r.most = 1, 2 // by that clock, the first attempt has timed out
		}
		objects := append(newRemote(0, r.steps[0], v1alpha1.RetryPolicy{Retries: &r.retries}, true), r.objects(t)...)
		objects[0].(*v1alpha1.Provision).Spec.Steps = r.steps
		d := &crashingProcess{at: at}
		d.testEnv = newTestEnv(t, d.serve(r.target, killed), objects...)
		d.refuse = func(bool) error {
			if d.countRequest(killed) {
				return nil
			}
			return errProcessEnded
		}
		key, _ := newProvision("shop", "edge-0")
		d.firstProcess(func() {
			d.queueProvision(key)
			time.Sleep(5 * time.Second)
			if r.meanwhile != nil {
				r.meanwhile(d, key)
			}
			time.Sleep(2 * time.Minute)
		})
		d.mu.Lock()
		requests, d.at, d.dead = d.requests, 0, false
		d.mu.Unlock()
		if ahead != 0 {
			d.shiftTimes(key, -ahead)
		}
		r.done = r.writesWhenDone(d, d.getProvision(key).Status)
		d.runWhile(func() { d.queueProvision(key); time.Sleep(10 * time.Minute) })
		r.expect(d, d.getProvision(key).Status, fmt.Sprintf("ended at request %d, killed %t, the next clock %v ahead", at, killed, ahead))
	})
	return requests
}

func (c *crashingProcess) firstProcess(do func()) {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() { c.room.Run(ctx); close(done) }()
	synctest.Wait()
	do()
	c.stop()
	<-done
	c.testEnv.mu.Lock()
	for _, timer := range c.timers {
		timer.Stop()
	}
	c.testEnv.mu.Unlock()
	room := New(c.room.Config)
	room.dial, room.attempts.requeue, room.probes.requeue = c.dial, c.queueProvision, c.queueProvision
	c.one <- struct{}{} // a reconcile may be running
	c.room = room
	<-c.one
}

func (c *crashingProcess) updateProvision(key types.NamespacedName, change func(*v1alpha1.Provision) error) {
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return change(c.getProvision(key)) }); err != nil {
		c.t.Error(err)
	}
}

func (c *crashingProcess) shiftTimes(key types.NamespacedName, by time.Duration) {
	c.updateProvision(key, func(p *v1alpha1.Provision) error {
		for _, at := range []*metav1.MicroTime{p.Status.StartedAt, p.Status.WaitingSince, p.Status.NotBefore} {
			if at != nil {
				at.Time = at.Add(by)
			}
		}
		if at := p.Status.NextAttemptAt; at != nil {
			at.Time = at.Add(by)
		}
		return c.here.Status().Update(c.t.Context(), p)
	})
}

func (r *restartCase) writesWhenDone(d *crashingProcess, status v1alpha1.ProvisionStatus) int {
	if len(status.Steps) == 0 || status.Steps[0].DoneAt == nil {
		return 0
	}
	return d.applied
}

func (r *restartCase) expect(d *crashingProcess, status v1alpha1.ProvisionStatus, how string) {
	d.t.Helper()
	want := cmp.Or(r.state, v1alpha1.ProvisionSucceeded)
	single := status.AttemptNumber == 1 && status.LastAttempt != nil && status.LastAttempt.Number == 1
	if status.State != want || !single && (r.most == 0 || status.AttemptNumber > int64(r.most)) {
		d.t.Errorf("%s: %s after %d attempts, last %+v", how, status.State, status.AttemptNumber, status.LastAttempt)
	}
	if d.applied > 4 || r.done > 0 && d.applied > r.done {
		d.t.Errorf("%s: two objects were applied %d times, %d times until that was done", how, d.applied, r.done)
	}
	if err := r.made(); err != nil {
		d.t.Errorf("%s: %v", how, err)
	}
}

// Wherever a process ends, the next one resumes the same attempt, even with a clock one hour
// behind: no attempt is lost or repeated, and no Job runs twice. Only a clock one hour ahead causes
// another attempt.
func TestAProcessThatEndsAtAnyRequest(t *testing.T) {
	for name, fresh := range restartCases() {
		t.Run(name, func(t *testing.T) {
			if name == "a chart" && testing.Short() {
				t.Skip("what renders has a limit of memory, and the race detector takes more")
			}
			all := fresh().runCase(t, 0, false, 0)
			if all < 10 {
				t.Fatalf("an attempt makes %d requests", all)
			}
			for at := 1; at <= all; at++ {
				fresh().runCase(t, at, at%2 == 0, 0)
				if testing.Short() {
					continue
				}
				fresh().runCase(t, at, at%2 == 1, 0)
				fresh().runCase(t, at, at%4 < 2, time.Hour)
				fresh().runCase(t, at, at%4 < 2, -time.Hour)
			}
			t.Logf("%d requests", all)
		})
	}
}
