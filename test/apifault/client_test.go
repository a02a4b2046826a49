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

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

func serializers() runtime.NegotiatedSerializer {
	return serializer.NewCodecFactory(view.Scheme()).WithoutConversion()
}

// do is a kind of API request that the controller makes.
type do struct {
	name string
	verb string // of apifault.Request
	call func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error
}

// big exceeds one packet and one HTTP/2 frame.
var big = strings.Repeat("level ", 20_000)

var ways = []do{
	{"GET", "get", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		return c.Get(ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{})
	}},
	{"list", "list", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(cm.Namespace))
	}},
	{"POST", "create", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		return c.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: "another"}, Data: map[string]string{"water": big},
		})
	}},
	{"PUT", "update", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		cm.Data = map[string]string{"water": big}
		return c.Update(ctx, cm)
	}},
	{"PATCH", "patch", func(ctx context.Context, c *caller, cm *corev1.ConfigMap) error {
		before := cm.DeepCopy()
		cm.Data = map[string]string{"water": big}
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

// row is a fault and its number of occurrences; 0: always.
type row struct {
	name  string
	times int
	fault apifault.Fault
	// refused closes the port.
	refused bool
	// slow limits a fault of about ten seconds to these request kinds.
	only []string
}

func says(status int, retryAfter string) apifault.Fault {
	return apifault.Fault{Status: status, RetryAfter: retryAfter}
}

var rows = []row{
	{name: "429, Retry-After: 0, ten times", times: 10, fault: says(429, "0")},
	{name: "429, Retry-After: 0, always", fault: says(429, "0")},
	{name: "503, Retry-After: 0, ten times", times: 10, fault: says(503, "0")},
	{name: "503, Retry-After: 0, always", fault: says(503, "0")},
	{name: "500, Retry-After: 0, always", fault: says(500, "0")},
	{name: "504, Retry-After: 0, always", fault: says(504, "0")},
	{name: "429, no Retry-After", fault: says(429, "")},
	{name: "503, no Retry-After", fault: says(503, "")},
	{name: "429, Retry-After: a date", fault: says(429, "Wed, 21 Oct 2099 07:28:00 GMT")},
	{name: "503, Retry-After: 0.5", fault: says(503, "0.5")},
	{name: "408, Retry-After: 0", fault: says(408, "0")},
	{name: "409, Retry-After: 0", fault: says(409, "0")},
	{name: "410", fault: says(410, "")},
	{name: "410 within a watch, once", times: 1, fault: apifault.Fault{Expired: true}, only: []string{"watch"}},
	{name: "connection refused; whoever waits gives up at the third", refused: true},
	{name: "connection reset, once", times: 1, fault: apifault.Fault{Conn: apifault.Reset}},
	{name: "connection reset, always", fault: apifault.Fault{Conn: apifault.Reset}, only: []string{"GET", "PATCH"}},
	{name: "connection reset once the server has done it, once", times: 1, fault: apifault.Fault{Conn: apifault.Reset, Landed: true}},
	{name: "connection closed, once", times: 1, fault: apifault.Fault{Conn: apifault.Closed}},
	{name: "GOAWAY and closed, once", times: 1, fault: apifault.Fault{Conn: apifault.GoAway}},
	{name: "GOAWAY that lets end what is under way", times: 1, fault: apifault.Fault{Conn: apifault.Draining}},
	{name: "answer cut off in the middle, once", times: 1, fault: apifault.Fault{Torn: true}},
}

// cell is the result of one request kind and fault.
type cell struct {
	tries, reached int
	ok             bool
}

// String formats the cell for the page.
func (c cell) String() string {
	word := "error"
	if c.ok {
		word = "ok"
	}
	return fmt.Sprintf("%d → %d %s", c.tries, c.reached, word)
}

func (r row) meets(d do) bool {
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

// measure sends a request into the fault over a new connection.
func (r row) measure(t *testing.T, d do) (cell, []apifault.Call) {
	t.Helper()
	p := newProxy(t)
	c := newCaller(t, p)
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "one"}, Data: map[string]string{"water": "low"},
	}
	if err := api.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	what := apifault.Request{Verb: d.verb, Resource: "configmaps", Namespace: cm.Namespace}
	ctx := t.Context()
	if r.refused {
		c.hangUp() // the next request needs a new connection
		p.Refuse()
		var giveUp context.CancelFunc
		ctx, giveUp = context.WithCancel(ctx)
		defer giveUp()
		c.after(3, giveUp) // a read would block forever
	} else {
		p.On(apifault.Rule{Request: what, Times: r.times, Fault: r.fault})
	}
	err := d.call(ctx, c, cm)
	calls := p.Calls(what)
	got := cell{tries: int(c.tries.Load()), ok: err == nil}
	t.Logf("%s: %v", d.name, err)
	_, got.reached = p.Count(what)
	if !r.refused && len(calls) != got.tries {
		t.Errorf("%s: %s: %d requests left the client and %d came to the proxy", r.name, d.name, got.tries, len(calls))
	}
	return got, calls
}

// A retried write is sent completely and applied once.
func TestABodyIsSentWholeEachTime(t *testing.T) {
	t.Parallel()
	for _, d := range ways {
		if d.verb != "create" && d.verb != "update" && d.verb != "patch" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			got, calls := rows[0].measure(t, d)
			if !got.ok || len(calls) != 11 {
				t.Fatalf("%s, %d calls", got, len(calls))
			}
			for _, call := range calls {
				if len(call.Body) < len(big) || string(call.Body) != string(calls[0].Body) {
					t.Errorf("request %d carries %d bytes, the first %d", call.Nth, len(call.Body), len(calls[0].Body))
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
			if cm.Data["water"] != big {
				t.Errorf("the server has %d bytes of %d", len(cm.Data["water"]), len(big))
			}
		})
	}
}

// Retry-After does not delay cancellation.
func TestTheContextBoundsTheRetries(t *testing.T) {
	t.Parallel()
	for _, d := range ways {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			c := newCaller(t, p)
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "one"}}
			if err := api.Create(t.Context(), cm); err != nil {
				t.Fatal(err)
			}
			p.On(apifault.Rule{Request: apifault.Request{Resource: "configmaps"}, Fault: says(http.StatusTooManyRequests, "3600")})
			ctx, giveUp := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- d.call(ctx, c, cm) }()
			controlplane.Until(t, func() string {
				if n, _ := p.Count(apifault.Request{}); n > 0 {
					return ""
				}
				return "no request yet"
			})
			giveUp()
			if err := <-ended; err == nil {
				t.Error("it succeeded")
			}
			if sent, _ := p.Count(apifault.Request{}); sent != 1 {
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
	p.On(apifault.Rule{Request: apifault.Request{Resource: "configmaps"}, Times: 2, Fault: says(http.StatusTooManyRequests, "0")})
	for range 2 {
		if err := ways[0].call(t.Context(), c, cm); err != nil {
			t.Fatal(err)
		}
	}
	calls := p.Calls(apifault.Request{})
	if len(calls) != 4 {
		t.Fatalf("%d requests, want 3 and 1", len(calls))
	}
	gap := func(n int) float64 { return calls[n].At.Sub(calls[n-1].At).Seconds() }
	if gap(1) < 0.9 || gap(2) < 1.9 || gap(3) > 0.9 {
		t.Errorf("after %.2f s, %.2f s, and the next request after %.2f s; want 1, 2 and 0", gap(1), gap(2), gap(3))
	}
}
