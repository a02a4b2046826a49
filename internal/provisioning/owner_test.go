// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
)

// retryCost counts what a fault costs each retrying layer.
type retryCost struct {
	calls    int // requests for the step's object, over all attempts
	queue    int // reconciliations repeated by the work queue
	attempts int32
	state    string
}

type faultyTarget struct {
	fakeServer

	fault http.HandlerFunc
	calls int
}

func (f *faultyTarget) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !strings.HasSuffix(req.URL.Path, "/nodes/a") && !strings.HasSuffix(req.URL.Path, "/configmaps/a") {
		f.fakeServer.ServeHTTP(w, req)
		return
	}
	f.mu.Lock()
	f.calls++
	fault := f.fault
	f.mu.Unlock()
	if fault == nil {
		f.fakeServer.ServeHTTP(w, req)
		return
	}
	fault(w, req)
}

func respondStatus(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Message: "no"}) //nolint:gosec // three digits
	}
}

func resetConnection(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = c.Close()
	}
}

func hangRequest(_ http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body) // detects the disconnect of the client
	<-req.Context().Done()
}

// A fault owned by the attempt costs three attempts with one request each and no work queue retry;
// one owned by the API call or the work queue costs no attempt.
func TestEachConditionHasOneOwner(t *testing.T) {
	gone := func(err error) func() error { return func() error { return err } }
	for _, tt := range []struct {
		name        string
		fault       http.HandlerFunc
		dials       func() error
		distrusts   bool
		source      string
		read, write retryCost
	}{
		// owned by the API call: client-go repeats a read ten times, and net/http once more on a
		// reused connection, all within the attempt
		{name: "connection reset", fault: resetConnection, read: retryCost{36, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		// owned by the attempt
		{name: "429, Retry-After: 7", fault: respondStatus(429, "Retry-After", "7"), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "503, Retry-After: 7", fault: respondStatus(503, "Retry-After", "7"), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "503", fault: respondStatus(503), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "500", fault: respondStatus(500), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "no answer", fault: hangRequest, read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "conflict", fault: respondStatus(409), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "validation", fault: respondStatus(422), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "RBAC", fault: respondStatus(403), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "credentials", fault: respondStatus(401), read: retryCost{3, 0, 3, "Failed"}, write: retryCost{3, 0, 3, "Failed"}},
		{name: "DNS", dials: gone(&net.DNSError{Err: "no such host", Name: "edge.example.com", IsNotFound: true}), read: retryCost{0, 0, 3, "Failed"}, write: retryCost{0, 0, 3, "Failed"}},
		{name: "TLS", distrusts: true, read: retryCost{0, 0, 3, "Failed"}, write: retryCost{0, 0, 3, "Failed"}},
		{name: "target is killed", dials: gone(&net.OpError{Op: "dial", Err: errors.New("connection refused")}), read: retryCost{0, 0, 3, "Failed"}, write: retryCost{0, 0, 3, "Failed"}},
		// permanent: not retried
		{name: "no YAML", source: "a: [", write: retryCost{0, 0, 1, "Failed"}},
	} {
		for _, verb := range []string{"read", "write"} {
			want := tt.read
			if verb == "write" {
				want = tt.write
			}
			if want.attempts == 0 {
				continue
			}
			t.Run(tt.name+"/"+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					target := &faultyTarget{fault: tt.fault}
					w, key := newRetryCost(t, target, verb, !tt.distrusts, tt.source)
					w.dials = tt.dials
					w.runWhile(func() { w.queueProvision(key); time.Sleep(time.Hour) })
					if got := w.retryCosts(target, key); got != want {
						t.Errorf("got %+v, want %+v; %+v", got, want, w.getProvision(key).Status.LastAttempt)
					}
				})
			})
		}
	}
}

func newRetryCost(t *testing.T, target http.Handler, verb string, trusts bool, source string) (*testEnv, types.NamespacedName) {
	step := v1alpha1.ProvisionStep{Name: "step", Wait: &v1alpha1.WaitStep{APIVersion: "v1", Kind: "Node", Name: "a"}}
	if verb == "write" {
		step = v1alpha1.ProvisionStep{Name: "step", Manifests: &v1alpha1.ManifestsStep{Sources: []v1alpha1.ManifestSource{{ConfigMap: "source"}}}}
	}
	retries := int32(2)
	objects := newRemote(0, step, v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1s", Factor: "1", MaxInterval: "1s", AttemptTimeout: "1m"}, trusts)
	if source == "" {
		source = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
	}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "source"}, Data: map[string]string{"a": source}})
	return newTestEnv(t, target, objects...), types.NamespacedName{Namespace: "shop", Name: "edge-0"}
}

func (e *testEnv) retryCosts(target *faultyTarget, key types.NamespacedName) retryCost {
	e.mu.Lock()
	defer e.mu.Unlock()
	target.mu.Lock()
	defer target.mu.Unlock()
	status := e.getProvision(key).Status
	return retryCost{target.calls, e.again, status.Attempts, status.State}
}

// The work queue retries errors of this cluster's API server before an attempt. A conflict within
// an attempt is retried in place.
func TestTheWorkQueueOwnsWhatIsNoAttempt(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "provisions"}, "edge-0", nil)
	for _, tt := range []struct {
		name        string
		first, last int // range of rejected status writes
		err         error
		want        retryCost
	}{
		{"503 before it begins", 1, 3, apierrors.NewServiceUnavailable("away"), retryCost{1, 3, 1, "Succeeded"}},
		{"conflict before it begins", 1, 1, conflict, retryCost{1, 1, 1, "Succeeded"}},
		{"conflicts within it", 2, 3, conflict, retryCost{1, 0, 1, "Succeeded"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := &faultyTarget{}
				w, key := newRetryCost(t, target, "write", true, "")
				writes := 0
				w.refuse = func(write bool) error {
					if !write {
						return nil
					}
					if writes++; writes >= tt.first && writes <= tt.last {
						return tt.err
					}
					return nil
				}
				w.runWhile(func() { w.queueProvision(key); time.Sleep(time.Hour) })
				got := w.retryCosts(target, key)
				got.calls = min(got.calls, 1) // reads repeat until ready
				if got != tt.want {
					t.Errorf("got %+v, want %+v; %+v", got, tt.want, w.getProvision(key).Status.LastAttempt)
				}
			})
		})
	}
}
