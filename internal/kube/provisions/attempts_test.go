// SPDX-License-Identifier: Apache-2.0

package provisions

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
	"weir.dev/weir/internal/provision"
)

func named(namespace, name string) (types.NamespacedName, *v1alpha1.Provision) {
	return types.NamespacedName{Namespace: namespace, Name: name},
		&v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
}

// A namespace gets 4 slots, all together 64, half of them for namespaces without an attempt. An
// attempt keeps its slot until its result is recorded.
func TestPlacesOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // attempts end concurrently
		queued := map[string]int{}
		a := newAttempts(func(key types.NamespacedName) {
			mu.Lock()
			defer mu.Unlock()
			queued[key.String()]++
		})
		key, p := named("shop", "first")
		if a.reserve(key, p.UID) {
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
			key, p := named(namespace, fmt.Sprint(n))
			if !a.reserve(key, p.UID) {
				return false
			}
			a.start(key, func(ctx context.Context) *ended {
				select {
				case <-time.After(time.Minute):
					return &ended{outcome: provision.Outcome{Result: provision.DidFail}}
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
		all, of := 4, map[int]int{}
		for ns := range 50 {
			for n := range 4 {
				if begins(fmt.Sprint("ns-", ns), n) {
					all++
					of[ns]++
				}
			}
		}
		if all != mostAttempts || of[6] != 4 || of[7] != 1 || of[38] != 1 {
			t.Errorf("%d attempts at a time: %v", all, of)
		}
		_, p = named("shop", "0")
		if at := a.look(p); !at.work || !at.busy || at.ended != nil {
			t.Errorf("under way: %+v", at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		at := a.look(p)
		if at.work || !at.busy || at.ended == nil || queued["shop/0"] != 1 || begins("shop", 4) {
			t.Errorf("at its end: %+v, %v", at, queued)
		}
		clear(queued)
		key, _ = named("shop", "0")
		a.settled(key, at.ended)
		if queued["ns-49/0"] != 1 || begins("shop", 4) || !begins("ns-49", 0) || (&Room{attempts: a}).Attempts("Failed") != 1 {
			t.Errorf("its place is not free for whoever has none: %v", queued)
		}
		stop()
		<-ran
		if len(a.in) != 40 { // ended, but not recorded
			t.Errorf("left over: %v", a.in)
		}
	})
}

// The attempt of a deleted Provision is canceled; a new Provision of that name is not affected.
func TestAnAttemptOfAProvisionThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttempts(func(types.NamespacedName) {})
		go a.run(t.Context())
		synctest.Wait()
		key, p := named("shop", "edge")
		if !a.reserve(key, p.UID) {
			t.Fatal("no place")
		}
		a.start(key, func(ctx context.Context) *ended { <-ctx.Done(); return &ended{} })
		a.abandon(key, p.UID)
		synctest.Wait()
		if !a.look(p).work {
			t.Error("the attempt of the Provision itself is ended")
		}
		a.abandon(key, "another")
		synctest.Wait()
		a.abandon(key, "another")
		if p.UID = "another"; !a.reserve(key, p.UID) {
			t.Error("the other has no place")
		}
	})
}

// A state survives the round trip through a status, at microsecond precision.
func TestLawStatusHoldsTheState(t *testing.T) {
	phases := []provision.Phase{"", provision.Running, provision.Waiting, provision.Succeeded, provision.Failed, provision.Cancelled}
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string) time.Time {
			if rapid.Bool().Draw(t, "no "+name) {
				return time.Time{}
			}
			return time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, name))
		}
		text := rapid.StringN(0, 20, 20)
		want := provision.State{
			Phase: rapid.SampledFrom(phases).Draw(t, "phase"), Job: text.Draw(t, "job"), Begun: rapid.IntRange(0, 1<<20).Draw(t, "begun"),
			Number: rapid.Int64Range(0, 1<<53).Draw(t, "number"), StartedAt: at("started"), Since: at("since"), NotBefore: at("not before"),
			Asked: rapid.Bool().Draw(t, "asked"), Waited: time.Duration(rapid.Int64Range(0, 1e18).Draw(t, "waited")),
			Cancelled: rapid.Bool().Draw(t, "cancelled"), Anew: rapid.Bool().Draw(t, "anew"),
			Handled: provision.Requests{Cancel: text.Draw(t, "c"), RetryNow: text.Draw(t, "r"), Reset: text.Draw(t, "s")},
		}
		var status, read v1alpha1.ProvisionStatus
		keep(&status, want)
		written, err := json.Marshal(status)
		if err = errors.Join(err, json.Unmarshal(written, &read)); err != nil {
			t.Fatal(err)
		}
		got := stateOf(&read)
		for _, at := range []*time.Time{&got.StartedAt, &got.Since, &got.NotBefore} {
			if !at.IsZero() {
				*at = at.Local() // same instant
			}
		}
		if got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		in := provision.Input{
			Job: rapid.SampledFrom([]string{want.Job, "another"}).Draw(t, "wanted"), Policy: provision.BuiltIn(),
			Requests: provision.Requests{Cancel: text.Draw(t, "cancel"), RetryNow: text.Draw(t, "retry now"), Reset: text.Draw(t, "reset")},
			AtWork:   rapid.Bool().Draw(t, "at work"), Busy: rapid.Bool().Draw(t, "busy"),
		}
		now := time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, "now"))
		wantState, wantDecision := want.Next(in, now)
		if state, decision := got.Next(in, now); state != wantState || !reflect.DeepEqual(decision, wantDecision) {
			t.Fatalf("it decides %+v, %+v, want %+v, %+v", state, decision, wantState, wantDecision)
		}
	})
}

// The size of a status does not grow with attempts, errors or annotations.
func TestAStatusIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", 20<<10)
		target := &faulty{fault: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			answer(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 403, Message: long})
		}}
		retries := int32(40)
		objects := remote(0, waitsForANode, v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1s", Factor: "1", MaxInterval: "1s"}, true)
		objects[0].SetAnnotations(map[string]string{v1alpha1.RetryNowAnnotation: long, v1alpha1.ResetAnnotation: long + "'", v1alpha1.CancelAnnotation: ""})
		w, key := newWhole(t, target, objects...), types.NamespacedName{Namespace: "shop", Name: "edge-0"}
		size := func() int {
			text, err := json.Marshal(w.is(key).Status)
			if err != nil {
				t.Fatal(err)
			}
			return len(text)
		}
		w.runs(func() {
			w.look(key)
			time.Sleep(30 * time.Second)
			few, begun := size(), w.is(key).Status.Attempts
			time.Sleep(time.Hour)
			is := w.is(key).Status
			if many := size(); begun < 3 || is.Attempts != retries+1 || many > few+100 || many > 12<<10 {
				t.Errorf("%d bytes after %d attempts, %d after %d", few, begun, many, is.Attempts)
			}
		})
	})
}

// A recorded request equals the requested one, even if it is cut inside a character.
func TestRequestsSurviveTheirRecord(t *testing.T) {
	for n := range 68 {
		_, p := named("shop", "edge")
		p.Annotations = map[string]string{v1alpha1.CancelAnnotation: strings.Repeat("x", n) + "世界"}
		text, err := json.Marshal(requestsOf(p))
		var recorded provision.Requests
		if err = errors.Join(err, json.Unmarshal(text, &recorded)); err != nil || recorded != requestsOf(p) || recorded.Cancel == "" {
			t.Errorf("%q is recorded as %q, %v", requestsOf(p), recorded, err)
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
		if got := inShort(errors.New(err), target); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := inShort(errors.New("Get \"\": "+err), ""); !strings.HasPrefix(got, "Get \"\": ") {
			t.Errorf("without a target: %q", got)
		}
	}
}
