// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

// server is an API server with these objects.
func server(have ...client.Object) client.WithWatch {
	scheme := metadata.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	of := func(o client.Object) *corev1.ObjectReference { return &o.(*corev1.Event).InvolvedObject }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(have...).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string { return []string{of(o).Kind} }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{of(o).Name} }).Build()
}

func earlier(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }

// poolOf returns a pool with these counts of desired and present members.
func poolOf(namespace, name, balancer, state, reason string, wanted, there int32) *v1alpha1.BackendPool {
	return &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, PoolName: namespace + "-" + name, LoadBalancer: v1alpha1.LoadBalancerReference{Name: balancer},
		},
		Status: v1alpha1.BackendPoolStatus{Desired: &wanted, Observed: &there, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionSynced, Reason: state, Message: reason, LastTransitionTime: earlier(20 * time.Minute)},
		}},
	}
}

// parked sets a pending Retry-After.
func parked(p *v1alpha1.BackendPool, code string, d time.Duration) *v1alpha1.BackendPool {
	p.Status.LastOutcome = &v1alpha1.AttemptOutcome{Class: "Retriable", Code: code, Since: earlier(20 * time.Minute)}
	p.Status.NextEligibleAt = ptr.To(earlier(-d))
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionParked, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetryAfter, Message: "Azure accepts no request before then"})
	return p
}

func lease() *coordinationv1.Lease {
	now := metav1.NewMicroTime(time.Now())
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("weir-0"), RenewTime: &now, LeaseDurationSeconds: ptr.To(int32(3600)),
	}}
}

// asks returns a function that gets a path and returns status and body.
func asks(t *testing.T, o Options) func(string) (int, string) {
	t.Helper()
	h := newPageHandler(o, "/KEY/", newCache())
	return func(path string) (int, string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			wellFormed(t, path, w.Body.Bytes())
		}
		return w.Code, w.Body.String()
	}
}

// wellFormed fails if a tag is not closed or foreign markup was not escaped.
func wellFormed(t *testing.T, path string, html []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "link", "img", "input", "br"}, xml.HTMLEntity
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v in\n%s", path, err, html)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			if a.Name.Local == "id" && ids[a.Value] {
				t.Errorf("%s: two elements are #%s", path, a.Value)
			}
			ids[a.Value] = ids[a.Value] || a.Name.Local == "id"
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || strings.HasPrefix(a.Value, "javascript:") {
				t.Errorf("%s: <%s %s=%q>", path, e.Name.Local, a.Name.Local, a.Value)
			}
			if a.Name.Local == "src" || a.Name.Local == "href" || a.Name.Local == "action" {
				if !strings.HasPrefix(a.Value, "/KEY/") && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("%s: <%s %s=%q> leads away", path, e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
		if e.Name.Local == "script" && len(e.Attr) != 2 {
			t.Errorf("%s: a script: %v", path, e.Attr)
		}
	}
}

// shop is a cluster with failed, pending and in-sync objects.
func shop() []client.Object {
	web := parked(poolOf("shop", "web", "kubernetes", v1alpha1.ReasonRetrying, "the last attempt failed: 429; retry 1 of 3 follows at 2099-01-01T12:00:42Z", 5, 3), "TooManyRequests", time.Minute)
	web.Status.WrittenAddresses = []string{"10.0.0.1"}
	web.Status.Members = &v1alpha1.OutOfSyncMembers{Missing: &v1alpha1.MemberSample{Count: 2, Named: []v1alpha1.Member{{Node: "n2", Address: "10.0.0.2"}}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}, AddressType: discoveryv1.AddressTypeIPv4}
	objects := []client.Object{
		lease(), web, slice,
		poolOf("shop", "api", "kubernetes", v1alpha1.ReasonInSync, "in sync with 2 nodes", 2, 2),
		poolOf("cart", "cart", "internal", v1alpha1.ReasonInSync, "in sync with 2 nodes", 2, 2),
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Finalizers: []string{metadata.ServiceFinalizer}, Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}, {Protocol: "SCTP", Port: 81}}},
			Status: corev1.ServiceStatus{
				LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1", Ports: []corev1.PortStatus{{Port: 81, Protocol: "SCTP", Error: ptr.To("ProtocolRefused")}}}}},
				Conditions:   []metav1.Condition{{Type: servicelb.TypeAccepted, Status: metav1.ConditionFalse, Reason: servicelb.ConditionReasonInvalid, Message: "SCTP is not to be had", LastTransitionTime: earlier(20 * time.Minute)}},
			},
		},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e1"}, InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "shop", Name: "web"},
			LastTimestamp: earlier(time.Minute), Count: 3, Type: "Warning", Reason: "LoadBalancerBackendPoolUpdateRetrying", Message: "429 <b>",
		},
		&corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e2"}, InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: "shop", Name: "web"},
			LastTimestamp: earlier(time.Hour), Count: 1, Type: "Normal", Reason: "EnsuredLoadBalancer",
		},
	}
	for i := range 3 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1)}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+1)}}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, NodeName: &n.Name})
		objects = append(objects, n)
	}
	return objects
}

// Gateways are listed with Services, and have a page of their own.
func TestPagesOfGateways(t *testing.T) {
	gateway := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "77", Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"}},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "weir", Listeners: []gatewayv1.Listener{{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType}}},
		Status: gatewayv1.GatewayStatus{
			Addresses:  []gatewayv1.GatewayStatusAddress{{Value: "192.0.2.7"}},
			Conditions: []metav1.Condition{{Type: "Accepted", Status: "True", Reason: "Accepted"}, {Type: "Programmed", Status: "True", Reason: "Programmed"}},
			Listeners: []gatewayv1.ListenerStatus{{Name: "web", AttachedRoutes: 1, Conditions: []metav1.Condition{
				{Type: "Accepted", Status: "True", Reason: "Accepted"}, {Type: "Programmed", Status: "False", Reason: "Invalid", Message: "Gateway <b>/a has it"},
			}}},
		},
	}
	fine := gateway.DeepCopy()
	fine.Name, fine.UID, fine.Status.Listeners = "fine", "78", nil
	partial, invalid := fine.DeepCopy(), fine.DeepCopy()
	partial.Name, partial.UID, partial.Status.Conditions[0].Reason = "partial", "79", "ListenersNotValid"
	invalid.Name, invalid.UID, invalid.Status.Conditions[0] = "invalid", "80", metav1.Condition{Type: "Accepted", Status: "False", Reason: "ListenersNotValid"}
	open := metav1.Condition{Type: "weir.dev/Restricted", Status: "True", Reason: servicelb.ConditionReasonNotEnforced, Message: "no rule"}
	partial.Status.Conditions = append(partial.Status.Conditions, open)
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"}}
	ask := asks(t, Options{API: server(append(shop(), gateway, fine, partial, invalid, class)...)})
	for path, want := range map[string]string{
		"/":                      "3 of 4 Gateways|gateway/shop/edge",
		"/services":              "1 to 5 of 5: 1 Service of type LoadBalancer, 4 Gateways|<span class=\"kind\">Gateway</span> <a href=\"/KEY/gateway/shop/edge\"|192.0.2.7|listener web: Invalid|state insync\">Programmed",
		"/services?find=gateway": "1 to 4 of 4: 0 Services of type LoadBalancer, 4 Gateways",
		"/gateway/shop/edge":     "192.0.2.7|TCP 443|Invalid: Gateway &lt;b&gt;/a has it|<dt>ListenerNotProgrammed</dt><dd><span class=\"state wrong\">listener web: Gateway &lt;b&gt;/a has it</span></dd>",
		"/gateway/shop/fine":     "192.0.2.7|TCP 443|weir, which Weir serves|state insync\">Accepted<|state insync\">Programmed<",
		"/gateway/shop/partial":  "state wrong\">ListenersNotValid<|state insync\">Programmed<|state wrong\">" + servicelb.ConditionReasonNotEnforced + "<",
		"/gateway/shop/invalid":  "state wrong\">ListenersNotValid<",
	} {
		status, body := ask(path)
		for part := range strings.SplitSeq(want, "|") {
			if status != http.StatusOK || !strings.Contains(body, part) {
				t.Errorf("%s: status %d, %q is not in\n%s", path, status, part, body)
			}
		}
	}
}

// Content of each path.
func TestPages(t *testing.T) { synctest.Test(t, testSheets) }

func testSheets(t *testing.T) {
	ask := asks(t, Options{API: server(shop()...), Cluster: "aks-west"})
	for _, tt := range []struct {
		path   string
		status int
		has    string // separated by |
		hasNot string
	}{
		{"/", 200, "Something is wrong with 1 of 3 BackendPools and 1 of 1 Service.</h1>|<p class=\"running insync\"><span class=\"state insync\">Weir runs: weir-0 leads.|members of others|<a href=\"/KEY/pool/shop/api\" tabindex=\"-1\"><rect|<li><a href=\"/KEY/pool/cart/cart\">|aks-west|TooManyRequests|3 of 5, 2 missing|/KEY/pool/shop/web\"|/KEY/service/shop/web\"|" +
			"2 pools, 1 in sync, 1 wrong|1 pool, 1 in sync|data-count>in 60s<|<time datetime=\"2099-01-01T12:00:42Z\" data-until>", "in sync with 2 nodes"},
		{"/services", 200, "1 to 1 of 1|/KEY/service/shop/web\"|192.0.2.1|kubernetes|state wrong\">Invalid", "shop/api"},
		{"/services?find=192.0.2.1", 200, "1 to 1 of 1|shop/web|value=\"192.0.2.1\"", ""},
		{"/services?find=other", 200, "No Gateway, and no Service", "<table"},
		{"/pools", 200, "1 to 3 of 3|shop/api|shop/web|cart/cart", "rel=\"next\""},
		{"/pools?find=CART", 200, "1 to 1 of 1|cart/cart|value=\"CART\"", "shop/api"},
		{"/pools?balancer=Kubernetes&is=wrong", 200, "1 to 1 of 1|shop/web", "shop/api"},
		{"/pools?find=nothing", 200, "None", "<table"},
		{"/pools?page=-7", 200, "1 to 3 of 3", ""},
		{"/wrong?cause=TooManyRequests", 200, "1 to 1 of 1|shop/web", "shop/api"},
		{"/wrong?cause=Gone", 200, "Nothing is wrong for this reason now", "<table"},
		{"/service/shop/web", 200, "192.0.2.1|<span class=\"since\">False for 20m</span>|<span class=\"since\">for 20m</span>|TCP 80|SCTP 81|ProtocolRefused|3 times|429 &lt;b&gt;|Missing|/KEY/node/n2\"|SCTP is not to be had<br><strong>What to do:</strong> fix what the message names (kubectl edit service -n shop web)", ""},
		{"/pool/shop/web", 200, "shop-web|of load balancer kubernetes, Retrying|Missing|InPool", ""},
		{"/node/n1", 200, "10.0.0.1|/KEY/pool/shop/web\"", "/KEY/pool/cart"},
		{"/pool/shop/none", 404, "It is not there", ""},
		{"/nothing", 404, "There is no such page", ""},
		{"/page.css", 200, "prefers-color-scheme: dark", ""},
		{"/page.js", 200, "\"use strict\"", ""},
		{"/icon.svg", 200, "<svg", ""},
	} {
		status, body := ask(tt.path)
		if status != tt.status {
			t.Errorf("%s: %d", tt.path, status)
		}
		for _, have := range strings.Split(tt.has, "|") {
			if !strings.Contains(body, have) {
				t.Errorf("%s: %q is not in\n%s", tt.path, have, body)
			}
		}
		if tt.hasNot != "" && strings.Contains(body, tt.hasNot) {
			t.Errorf("%s: %q is in\n%s", tt.path, tt.hasNot, body)
		}
	}
}

// A problem that no condition of a Service has is marked.
func TestOtherProblemsOfAServiceAreMarked(t *testing.T) {
	ended := lease()
	ended.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-3 * time.Hour)))
	_, body := asks(t, Options{API: server(append(shop()[1:], ended)...)})("/service/shop/web")
	if !strings.Contains(body, `<dt>NoLeader</dt><dd><span class="state wrong">`) {
		t.Error(body)
	}
}

// Events are shown newest first.
func TestEventsBeginWithTheLast(t *testing.T) {
	_, body := asks(t, Options{API: server(shop()...)})("/service/shop/web")
	if last, first := strings.Index(body, "UpdateRetrying</strong>"), strings.Index(body, "EnsuredLoadBalancer</strong>"); last < 0 || last > first {
		t.Errorf("%d, %d in\n%s", last, first, body)
	}
}

func TestLinks(t *testing.T) {
	for want, of := range map[string][3]string{
		"pool/shop/a%2F..%2Fb": {"BackendPool", "shop", "a/../b"}, "service/shop/web%3Fx": {"Service", "shop", "web?x"}, "node/n%231": {"Node", "", "n#1"}, "": {"Lease", "a", "b"},
	} {
		if got := objectURL(of[0], of[1], of[2]); got != want {
			t.Errorf("%v: %s, want %s", of, got, want)
		}
	}
}

// Text from tenants is escaped: names, messages, events and labels.
func TestForeignTextIsEscaped(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)> {{.}} javascript:alert(1) ` + "\x1b[31m\u202e"
	p := parked(poolOf("shop", "web", "kubernetes", v1alpha1.ReasonRetrying, evil, 3, 2), evil, time.Minute)
	p.Spec.PoolName, p.Spec.LoadBalancer.Name = evil, evil
	p.Status.WrittenAddresses = []string{"10.0.0.1"}
	p.Status.Down = []v1alpha1.DownAddress{{Address: "10.0.0.1", Node: evil, Reason: evil}}
	p.Status.Members = &v1alpha1.OutOfSyncMembers{Foreign: &v1alpha1.MemberSample{Count: 1, Named: []v1alpha1.Member{{Node: evil, Address: evil}}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: evil, Value: evil, Effect: "NoSchedule"}}}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	holder := lease()
	holder.Spec.HolderIdentity = ptr.To(evil)
	objects := []client.Object{holder, p, node,
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Finalizers: []string{metadata.ServiceFinalizer}, Annotations: map[string]string{metadata.PlaceAnnotation: evil}},
			Spec:       corev1.ServiceSpec{Type: evil, ExternalTrafficPolicy: evil, Ports: []corev1.ServicePort{{Name: evil, Protocol: evil, Port: 80}}},
			Status: corev1.ServiceStatus{
				LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{Hostname: evil, Ports: []corev1.PortStatus{{Port: 80, Protocol: evil, Error: ptr.To(evil)}}}}},
				Conditions:   []metav1.Condition{{Type: "weir.dev/" + evil, Status: metav1.ConditionFalse, Reason: evil, Message: evil}},
			},
		}}
	for _, of := range []corev1.ObjectReference{{Kind: "Service", Namespace: "shop", Name: "web"}, {Kind: "Node", Namespace: "default", Name: "n1"}} {
		objects = append(objects, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "e"}, InvolvedObject: of, LastTimestamp: earlier(time.Minute), Type: evil, Reason: evil, Message: evil,
		})
	}
	ask := asks(t, Options{API: server(objects...), Cluster: evil})
	for _, path := range []string{"/", "/pools", "/pools?find=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/wrong?cause=%22%3E%3Cscript%3E", "/service/shop/web", "/pool/shop/web", "/node/n1", "/node/%3Cscript%3Ealert(1)%3C%2Fscript%3E"} {
		_, body := ask(path)
		if strings.Count(body, "<script") != 1 || strings.Count(body, "<img") != 1 || strings.ContainsAny(body, "\x1b\u202e") {
			t.Errorf("%s:\n%s", path, body)
		}
		if path != "/node/%3Cscript%3Ealert(1)%3C%2Fscript%3E" && !strings.Contains(body, "alert(1)") && !strings.Contains(path, "wrong") {
			t.Errorf("%s does not show what others wrote:\n%s", path, body)
		}
	}
}

// A forbidden request shows the error and a fix; the page keeps working.
func TestInvalidRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		status int
		has    string
	}{
		{"no rights", apierrors.NewForbidden(schema.GroupResource{Group: "weir.dev", Resource: "backendpools"}, "", nil), 403, "weir page -n NAMESPACE"},
		{"no answer", fmt.Errorf("connection refused"), 502, "connection refused"},
	} {
		api := interceptor.NewClient(server(), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tt.err },
		})
		ask := asks(t, Options{API: api})
		for _, path := range []string{"/", "/pools", "/wrong?cause=x", "/node/n1"} {
			if status, body := ask(path); path != "/node/n1" && (status != tt.status || !strings.Contains(body, tt.has)) {
				t.Errorf("%s: %s: %d\n%s", tt.name, path, status, body)
			}
		}
	}
	ask := asks(t, Options{API: server(shop()...), Namespace: "cart", Cluster: "aks"})
	if status, body := ask("/"); status != 200 || strings.Contains(body, "shop/web") || !strings.Contains(body, "namespace cart") {
		t.Errorf("one namespace: %d\n%s", status, body)
	}
	if status, _ := ask("/pool/shop/web"); status != 404 {
		t.Errorf("another namespace: %d", status)
	}
}

// With 10,000 pools the front page shows a sample, the list has all, and the cache stays small.
func TestAPageOfTenThousandPools(t *testing.T) {
	var objects []client.Object
	for i := range 10_000 {
		p := poolOf(fmt.Sprintf("team-%03d", i%100), fmt.Sprintf("pool-%05d", i), fmt.Sprintf("lb-%02d", i%80), v1alpha1.ReasonInSync, "in sync with 3 nodes", 3, 3)
		if i%4 == 0 {
			p = parked(poolOf(p.Namespace, p.Name, p.Spec.LoadBalancer.Name, v1alpha1.ReasonRetrying, "the last attempt failed: 429", 3, 2), "TooManyRequests", time.Minute)
		}
		p.Status.WrittenAddresses = []string{"10.0.0.1"}
		objects = append(objects, p)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	ask := asks(t, Options{API: server(append(objects, lease(), node)...)})
	if _, explanation := ask("/node/n1"); len(explanation) > 400<<10 || strings.Count(explanation, "<article class=\"pool wrong\"") != maxPools || !strings.Contains(explanation, "And 9900 more pools") {
		t.Errorf("a node that is in all pools: %d bytes", len(explanation))
	}
	_, front := ask("/")
	if !strings.Contains(front, "2500 of 10000 BackendPools") || !strings.Contains(front, "2490 more") || len(front) > 1<<20 ||
		strings.Count(front, "<article class=\"balancer") != maxLoadBalancers || !strings.Contains(front, "And 40 more load balancers") {
		t.Errorf("%d bytes", len(front))
	}
	seen := map[string]bool{}
	for page := 1; page <= 50; page++ {
		_, list := ask(fmt.Sprintf("/pools?page=%d", page))
		rows := strings.Split(list, "<th scope=\"row\">")[1:]
		if len(rows) != rowsPerPage || len(list) > 300<<10 {
			t.Fatalf("page %d: %d rows, %d bytes", page, len(rows), len(list))
		}
		for _, row := range rows {
			_, name, _ := strings.Cut(row, ">")
			name, _, _ = strings.Cut(name, "<")
			seen[name] = true
		}
	}
	if len(seen) != 10_000 {
		t.Errorf("%d pools are listed", len(seen))
	}
	if _, list := ask("/wrong?cause=TooManyRequests&page=13"); !strings.Contains(list, "2401 to 2500 of 2500") || strings.Contains(list, "rel=\"next\"") {
		t.Error("the last page of what is wrong")
	}
}
