// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

func serializers() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(metadata.Scheme()).WithoutConversion()
}

// requestKind is a kind of API request that the controller makes.
type requestKind struct {
	name string
	verb string // of apifault.Request
	call func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error
}

// bigBody exceeds one packet and one HTTP/2 frame.
var bigBody = strings.Repeat("in sync ", 20_000)

var requestKinds = []requestKind{
	{"GET", "get", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		return c.Get(ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{})
	}},
	{"list", "list", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(cm.Namespace))
	}},
	{"POST", "create", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		return c.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: "another"}, Data: map[string]string{"water": bigBody},
		})
	}},
	{"PUT", "update", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		cm.Data = map[string]string{"water": bigBody}
		return c.Update(ctx, cm)
	}},
	{"PATCH", "patch", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		before := cm.DeepCopy()
		cm.Data = map[string]string{"water": bigBody}
		return c.Patch(ctx, cm, client.MergeFrom(before))
	}},
	{"watch", "watch", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(cm.Namespace))
		if err != nil {
			return err
		}
		defer w.Stop()
		event, open := <-w.ResultChan()
		switch {
		case !open:
			return fmt.Errorf("the watch ended")
		case event.Type == watch.Error:
			return fmt.Errorf("the watch says %v", event.Object)
		}
		return nil
	}},
	{"stream", "list", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		body, err := c.raw.Get().Namespace(cm.Namespace).Resource("configmaps").Stream(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		_, err = io.Copy(io.Discard, body)
		return err
	}},
}

// faultRow is a fault and its number of occurrences; 0: always.
type faultRow struct {
	name  string
	times int
	fault apifault.Fault
	// refused closes the port.
	refused bool
	// slow limits a fault of about ten seconds to these request kinds.
	only []string
}

func hasText(status int, retryAfter string) apifault.Fault {
	return apifault.Fault{Status: status, RetryAfter: retryAfter}
}

var faultRows = []faultRow{
	{name: "429, Retry-After: 0, ten times", times: 10, fault: hasText(429, "0")},
	{name: "429, Retry-After: 0, always", fault: hasText(429, "0")},
	{name: "503, Retry-After: 0, ten times", times: 10, fault: hasText(503, "0")},
	{name: "503, Retry-After: 0, always", fault: hasText(503, "0")},
	{name: "500, Retry-After: 0, always", fault: hasText(500, "0")},
	{name: "504, Retry-After: 0, always", fault: hasText(504, "0")},
	{name: "429, no Retry-After", fault: hasText(429, "")},
	{name: "503, no Retry-After", fault: hasText(503, "")},
	{name: "429, Retry-After: a date", fault: hasText(429, "Wed, 21 Oct 2099 07:28:00 GMT")},
	{name: "503, Retry-After: 0.5", fault: hasText(503, "0.5")},
	{name: "408, Retry-After: 0", fault: hasText(408, "0")},
	{name: "409, Retry-After: 0", fault: hasText(409, "0")},
	{name: "410", fault: hasText(410, "")},
	{name: "410 within a watch, once", times: 1, fault: apifault.Fault{ExpireWatch: true}, only: []string{"watch"}},
	{name: "connection refused; whoever waits gives up at the third", refused: true},
	{name: "connection reset, once", times: 1, fault: apifault.Fault{Connection: apifault.ResetConn}},
	{name: "connection reset, always", fault: apifault.Fault{Connection: apifault.ResetConn}, only: []string{"GET", "PATCH"}},
	{name: "connection reset once the server has done it, once", times: 1, fault: apifault.Fault{Connection: apifault.ResetConn, AfterServer: true}},
	{name: "connection closed, once", times: 1, fault: apifault.Fault{Connection: apifault.CloseConn}},
	{name: "GOAWAY and closed, once", times: 1, fault: apifault.Fault{Connection: apifault.GoAwayConn}},
	{name: "GOAWAY that lets end what is under way", times: 1, fault: apifault.Fault{Connection: apifault.DrainConn}},
	{name: "answer cut off in the middle, once", times: 1, fault: apifault.Fault{Truncate: true}},
}

// faultCell is the result of one request kind and fault.
type faultCell struct {
	tries, reached int
	ok             bool
}

// String formats the cell for the page.
func (c faultCell) String() string {
	word := "error"
	if c.ok {
		word = "ok"
	}
	return fmt.Sprintf("%d → %d %s", c.tries, c.reached, word)
}

func (r faultRow) applyFault(d requestKind) bool {
	if r.only == nil {
		return true
	}
	for _, name := range r.only {
		if name == d.name {
			return true
		}
	}
	return false
}

// measureRequest sends a request into the fault over a new connection.
func (r faultRow) measureRequest(t *testing.T, d requestKind) (faultCell, []apifault.Call) {
	t.Helper()
	p := newProxy(t)
	c := newCaller(t, p)
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "one"}, Data: map[string]string{"water": "low"},
	}
	if err := api.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	name := apifault.Request{Verb: d.verb, Resource: "configmaps", Namespace: cm.Namespace}
	ctx := t.Context()
	if r.refused {
		c.hangUp() // the next request needs a new connection
		p.RefuseConnections()
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		c.after(3, cancel) // a read would block forever
	} else {
		p.AddRule(apifault.Rule{Request: name, Times: r.times, Fault: r.fault})
	}
	err := d.call(ctx, c, cm)
	calls := p.MatchingCalls(name)
	got := faultCell{tries: int(c.tries.Load()), ok: err == nil}
	t.Logf("%s: %v", d.name, err)
	_, got.reached = p.CountCalls(name)
	if !r.refused && len(calls) != got.tries {
		t.Errorf("%s: %s: %d requests left the client and %d came to the proxy", r.name, d.name, got.tries, len(calls))
	}
	return got, calls
}

// A retried write is sent completely and applied once.
func TestABodyIsSentWholeEachTime(t *testing.T) {
	t.Parallel()
	for _, d := range requestKinds {
		if d.verb != "create" && d.verb != "update" && d.verb != "patch" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			got, calls := faultRows[0].measureRequest(t, d)
			if !got.ok || len(calls) != 11 {
				t.Fatalf("%s, %d calls", got, len(calls))
			}
			for _, call := range calls {
				if len(call.Body) < len(bigBody) || string(call.Body) != string(calls[0].Body) {
					t.Errorf("request %d carries %d bytes, the first %d", call.Number, len(call.Body), len(calls[0].Body))
				}
			}
			var cm corev1.ConfigMap
			name := map[string]string{"create": "another"}[d.verb]
			if name == "" {
				name = "one"
			}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: calls[0].Namespace, Name: name}, &cm); err != nil {
				t.Fatal(err)
			}
			if cm.Data["water"] != bigBody {
				t.Errorf("the server has %d bytes of %d", len(cm.Data["water"]), len(bigBody))
			}
		})
	}
}

// Retry-After does not delay cancellation.
func TestTheContextBoundsTheRetries(t *testing.T) {
	t.Parallel()
	for _, d := range requestKinds {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			c := newCaller(t, p)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "one"}}
			if err := api.Create(t.Context(), cm); err != nil {
				t.Fatal(err)
			}
			p.AddRule(apifault.Rule{Request: apifault.Request{Resource: "configmaps"}, Fault: hasText(http.StatusTooManyRequests, "3600")})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- d.call(ctx, c, cm) }()
			controlplane.WaitUntil(t, func() string {
				if n, _ := p.CountCalls(apifault.Request{}); n > 0 {
					return ""
				}
				return "no request yet"
			})
			cancel()
			if err := <-ended; err == nil {
				t.Error("it succeeded")
			}
			if sent, _ := p.CountCalls(apifault.Request{}); sent != 1 {
				t.Errorf("%d requests", sent)
			}
		})
	}
}

// KUBE_CLIENT_BACKOFF_BASE and _DURATION, in whole seconds, space the attempts of a request even if
// the server allows an immediate retry. client-go keeps this state per request.
func TestTheBackOffOfTheEnvironment(t *testing.T) {
	t.Setenv("KUBE_CLIENT_BACKOFF_BASE", "1")
	t.Setenv("KUBE_CLIENT_BACKOFF_DURATION", "120")
	p := newProxy(t)
	c := newCaller(t, p)
	ns := newNamespace(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "one"}}
	if err := api.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	p.AddRule(apifault.Rule{Request: apifault.Request{Resource: "configmaps"}, Times: 2, Fault: hasText(http.StatusTooManyRequests, "0")})
	for range 2 {
		if err := requestKinds[0].call(t.Context(), c, cm); err != nil {
			t.Fatal(err)
		}
	}
	calls := p.MatchingCalls(apifault.Request{})
	if len(calls) != 4 {
		t.Fatalf("%d requests, want 3 and 1", len(calls))
	}
	gap := func(n int) float64 { return calls[n].At.Sub(calls[n-1].At).Seconds() }
	if gap(1) < 0.9 || gap(2) < 1.9 || gap(3) > 0.9 {
		t.Errorf("after %.2f s, %.2f s, and the next request after %.2f s; want 1, 2 and 0", gap(1), gap(2), gap(3))
	}
}
