// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

func newProvision(namespace, name string) (types.NamespacedName, *v1alpha1.Provision) {
	return types.NamespacedName{Namespace: namespace, Name: name},
		&v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
}

// A namespace gets 4 slots, all together 64, half of them for namespaces without an attempt. An
// attempt keeps its slot until its result is recorded.
func TestPlacesOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // attempts end concurrently
		queued := map[string]int{}
		a := newAttemptTracker(func(key types.NamespacedName) {
			mu.Lock()
			defer mu.Unlock()
			queued[key.String()]++
		})
		key, p := newProvision("shop", "first")
		if a.reserveSlot(key, p.UID) {
			t.Fatal("an attempt has a place though this process does not lead")
		}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { a.run(ctx); close(ran) }()
		synctest.Wait()
		if queued["shop/first"] != 1 {
			t.Errorf("who had no place is not looked at once there are places: %v", queued)
		}
		begins := func(namespace string, n int) bool {
			key, p := newProvision(namespace, fmt.Sprint(n))
			if !a.reserveSlot(key, p.UID) {
				return false
			}
			a.startAttempt(key, func(ctx context.Context) *attemptResult {
				select {
				case <-time.After(time.Minute):
					return &attemptResult{outcome: policy.Outcome{Result: policy.ResultFailed}}
				case <-ctx.Done():
					return nil
				}
			})
			return true
		}
		for n := range 6 {
			if got := begins("shop", n); got != (n < 4) {
				t.Errorf("attempt %d of a namespace: %v", n+1, got)
			}
		}
		places, of := 4, map[int]int{}
		for ns := range 50 {
			for n := range 4 {
				if begins(fmt.Sprint("ns-", ns), n) {
					places++
					of[ns]++
				}
			}
		}
		if places != maxAttempts || of[6] != 4 || of[7] != 1 || of[38] != 1 {
			t.Errorf("%d attempts at a time: %v", places, of)
		}
		_, p = newProvision("shop", "0")
		if at := a.stateFor(p); !at.running || !at.busy || at.result != nil {
			t.Errorf("under way: %+v", at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		at := a.stateFor(p)
		if at.running || !at.busy || at.result == nil || queued["shop/0"] != 1 || begins("shop", 4) {
			t.Errorf("at its end: %+v, %v", at, queued)
		}
		clear(queued)
		key, _ = newProvision("shop", "0")
		a.completeAttempt(key, at.result)
		if queued["ns-49/0"] != 1 || begins("shop", 4) || !begins("ns-49", 0) || (&Reconciler{attempts: a}).AttemptCount("Failed") != 1 {
			t.Errorf("its place is not free for whoever has none: %v", queued)
		}
		stop()
		<-ran
		if len(a.perNamespace) != 40 { // ended, but not recorded
			t.Errorf("left over: %v", a.perNamespace)
		}
	})
}

// The attempt of a deleted Provision is canceled; a new Provision of that name is not affected.
func TestAnAttemptOfAProvisionThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttemptTracker(func(types.NamespacedName) {})
		go a.run(t.Context())
		synctest.Wait()
		key, p := newProvision("shop", "edge")
		if !a.reserveSlot(key, p.UID) {
			t.Fatal("no place")
		}
		a.startAttempt(key, func(ctx context.Context) *attemptResult { <-ctx.Done(); return &attemptResult{} })
		a.cancelStale(key, p.UID)
		synctest.Wait()
		if !a.stateFor(p).running {
			t.Error("the attempt of the Provision itself is ended")
		}
		a.cancelStale(key, "another")
		synctest.Wait()
		a.cancelStale(key, "another")
		if p.UID = "another"; !a.reserveSlot(key, p.UID) {
			t.Error("the other has no place")
		}
	})
}

// A state survives the round trip through a status, at microsecond precision.
func TestLawStatusHoldsTheState(t *testing.T) {
	phases := []policy.Phase{"", policy.Running, policy.Waiting, policy.Succeeded, policy.Failed, policy.Cancelled}
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string) time.Time {
			if rapid.Bool().Draw(t, "no "+name) {
				return time.Time{}
			}
			return time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, name))
		}
		text := rapid.StringN(0, 20, 20)
		want := policy.State{
			Phase: rapid.SampledFrom(phases).Draw(t, "phase"), SpecDigest: text.Draw(t, "job"), Attempts: rapid.IntRange(0, 1<<20).Draw(t, "begun"),
			Number: rapid.Int64Range(0, 1<<53).Draw(t, "number"), StartedAt: at("started"), Since: at("since"), NotBefore: at("not before"),
			RetryRequested: rapid.Bool().Draw(t, "asked"), TotalWait: time.Duration(rapid.Int64Range(0, 1e18).Draw(t, "waited")),
			Cancelled: rapid.Bool().Draw(t, "cancelled"), Repeat: rapid.Bool().Draw(t, "anew"),
			HandledRequests: policy.Requests{Cancel: text.Draw(t, "c"), RetryNow: text.Draw(t, "r"), Reset: text.Draw(t, "s")},
		}
		var status, read v1alpha1.ProvisionStatus
		storeState(&status, want)
		written, err := json.Marshal(status)
		if err = errors.Join(err, json.Unmarshal(written, &read)); err != nil {
			t.Fatal(err)
		}
		got := stateFromStatus(&read)
		for _, at := range []*time.Time{&got.StartedAt, &got.Since, &got.NotBefore} {
			if !at.IsZero() {
				*at = at.Local() // same instant
			}
		}
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		in := policy.Input{
			SpecDigest: rapid.SampledFrom([]string{want.SpecDigest, "another"}).Draw(t, "wanted"), Policy: policy.DefaultPolicy(),
			Requests: policy.Requests{Cancel: text.Draw(t, "cancel"), RetryNow: text.Draw(t, "retry now"), Reset: text.Draw(t, "reset")},
			AtWork:   rapid.Bool().Draw(t, "at work"), Busy: rapid.Bool().Draw(t, "busy"),
		}
		now := time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, "now"))
		wantState, wantDecision := want.NextAction(in, now)
		if state, decision := got.NextAction(in, now); state != wantState || !reflect.DeepEqual(decision, wantDecision) {
			t.Fatalf("it decides %+v, %+v, want %+v, %+v", state, decision, wantState, wantDecision)
		}
	})
}

// The size of a status does not grow with attempts, errors or annotations.
func TestAStatusIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", 20<<10)
		target := &faultyTarget{fault: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 403, Message: long})
		}}
		retries := int32(40)
		objects := newRemote(0, nodeWaitStep, v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1s", Factor: "1", MaxInterval: "1s"}, true)
		objects[0].SetAnnotations(map[string]string{v1alpha1.RetryNowAnnotation: long, v1alpha1.ResetAnnotation: long + "'", v1alpha1.CancelAnnotation: ""})
		w, key := newTestEnv(t, target, objects...), types.NamespacedName{Namespace: "shop", Name: "edge-0"}
		size := func() int {
			text, err := json.Marshal(w.getProvision(key).Status)
			if err != nil {
				t.Fatal(err)
			}
			return len(text)
		}
		w.runWhile(func() {
			w.queueProvision(key)
			time.Sleep(30 * time.Second)
			few, begun := size(), w.getProvision(key).Status.Attempts
			time.Sleep(time.Hour)
			status := w.getProvision(key).Status
			if many := size(); begun < 3 || status.Attempts != retries+1 || many > few+100 || many > 12<<10 {
				t.Errorf("%d bytes after %d attempts, %d after %d", few, begun, many, status.Attempts)
			}
		})
	})
}

// A recorded request equals the requested one, even if it is cut inside a character.
func TestRequestsSurviveTheirRecord(t *testing.T) {
	for n := range 68 {
		_, p := newProvision("shop", "edge")
		p.Annotations = map[string]string{v1alpha1.CancelAnnotation: strings.Repeat("x", n) + "世界"}
		text, err := json.Marshal(userRequests(p))
		var recorded policy.Requests
		if err = errors.Join(err, json.Unmarshal(text, &recorded)); err != nil || recorded != userRequests(p) || recorded.Cancel == "" {
			t.Errorf("%q is recorded as %q, %v", userRequests(p), recorded, err)
		}
	}
}

// A failed request to the target is reported without the library's prefix.
func TestFailuresInShort(t *testing.T) {
	const target = "https://127.0.0.1:1"
	for err, want := range map[string]string{
		`Namespace operators: failed to get restmapping: failed to get server groups: Get "https://127.0.0.1:1/api": dial tcp 127.0.0.1:1: connect: connection reset by peer`: "Namespace operators: connection reset by peer",
		`Node a: Get "https://127.0.0.1:1/api/v1/nodes/a": context deadline exceeded; ConfigMap b: Patch "https://127.0.0.1:1/b?c=d": EOF; not begun for it: ready`:           "Node a: context deadline exceeded; ConfigMap b: EOF; not begun for it: ready",
		`failed to get server groups: unexpected error when reading response body. Please retry. Original error: read tcp 1: EOF`:                                             "read tcp 1: EOF",
		`Get "https://127.0.0.1:1/api": read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer`:                                                                    "connection reset by peer",
		`Secret edge: Get "https://10.0.0.1:443/api/v1/namespaces/shop/secrets/edge": dial tcp 10.0.0.1:443: connect: connection refused`:                                     `Secret edge: Get "https://10.0.0.1:443/api/v1/namespaces/shop/secrets/edge": dial tcp 10.0.0.1:443: connect: connection refused`,
		`Get "https://127.0.0.1:10/api": EOF`:       `Get "https://127.0.0.1:10/api": EOF`,
		`ConfigMap a is forbidden: Get "rid" of it`: `ConfigMap a is forbidden: Get "rid" of it`,
	} {
		if got := shortenError(errors.New(err), target); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := shortenError(errors.New("Get \"\": "+err), ""); !strings.HasPrefix(got, "Get \"\": ") {
			t.Errorf("without a target: %q", got)
		}
	}
}
