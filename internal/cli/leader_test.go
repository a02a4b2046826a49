// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	protocol "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/requestlog"
)

// apiServer serves a Lease and forwards connections to a pod's port, like kube-apiserver.
type apiServer struct {
	t       *testing.T
	lease   any               // a Lease, or an error status
	refused *metav1.Status    // error of portforward
	pod     string            // address; empty: not listening
	asked   map[string]string // requested paths and their tokens
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked[r.URL.Path] = r.Header.Get("Authorization")
	if !strings.HasSuffix(r.URL.Path, "/portforward") {
		answer(w, a.lease)
		return
	}
	if a.refused != nil {
		answer(w, a.refused)
		return
	}
	socket, err := (&websocket.Upgrader{Subprotocols: []string{protocol.WebsocketsSPDYTunnelingPortForwardV1}}).Upgrade(w, r, nil)
	if err != nil {
		a.t.Error(err)
		return
	}
	streams := make(chan httpstream.Stream, 2)
	conn, err := spdy.NewServerConnection(portforward.NewTunnelingConnection("test", socket), func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if err != nil {
		a.t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	output, data := <-streams, <-streams
	if output.Headers().Get(corev1.StreamType) != corev1.StreamTypeError || data.Headers().Get(corev1.PortHeader) != "8082" {
		a.t.Errorf("streams %v, %v", output.Headers(), data.Headers())
	}
	to, err := net.Dial("tcp", a.pod)
	if err != nil {
		fmt.Fprint(output, "connection refused inside namespace")
		_, _ = output.Close(), data.Close()
		<-conn.CloseChan()
		return
	}
	_ = output.Close()
	go func() { _, _ = io.Copy(to, data) }()
	_, _ = io.Copy(data, to)
	_ = data.Close()
	<-conn.CloseChan()
}

func answer(w http.ResponseWriter, about any) {
	w.Header().Set("Content-Type", "application/json")
	if s, ok := about.(*metav1.Status); ok {
		w.WriteHeader(int(s.Code))
	}
	_ = json.NewEncoder(w).Encode(about)
}

// valid is longer than any test.
const valid = time.Hour

func held(by string, renewed time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: app.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &by, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(time.Now().Add(renewed)))},
	}
}

func statusOf(err *apierrors.StatusError) *metav1.Status {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &s
}

// The leader is found by its Lease and reached through the API server with the caller's token; errors include
// a hint.
func TestTheLeaderIsAsked(t *testing.T) {
	log := requestlog.New(1 << 20)
	log.Add(requestlog.Call{At: time.Now(), Op: "put", Resource: "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes", Status: 200, RequestID: "6f1c"})
	weir := httptest.NewServer(requestlog.NewHandler(log))
	defer weir.Close()
	pods, leases := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	const holder = "weir-controller-6b7d_0c1f"
	for name, tt := range map[string]struct {
		apiServer
		wantText string // of the error
	}{
		"all is well":     {apiServer{lease: held(holder, valid), pod: weir.Listener.Addr().String()}, ""},
		"not installed":   {apiServer{lease: statusOf(apierrors.NewNotFound(leases, app.LeaseName))}, "namespace weir-system has no Lease weir-controller, which names the leader: does Weir run in another one (--weir-namespace)? One outside of the cluster is reached by --operator-url"},
		"no right":        {apiServer{lease: statusOf(apierrors.NewForbidden(leases, app.LeaseName, nil))}, "you may not get Lease weir-controller of namespace weir-system"},
		"nobody leads":    {apiServer{lease: held("", valid)}, "no process holds Lease weir-system/weir-controller: weir status"},
		"it is gone":      {apiServer{lease: held(holder, -time.Minute)}, "no process holds Lease"},
		"a process":       {apiServer{lease: held("my laptop_0c1f", valid)}, `"my laptop_0c1f" leads, which is no pod: where it runs, use --operator-url http://127.0.0.1:8082`},
		"another's path":  {apiServer{lease: held("../secrets_0c1f", valid)}, "leads, which is no pod"},
		"outside":         {apiServer{lease: held(holder, valid), refused: statusOf(apierrors.NewNotFound(pods, "weir-controller-6b7d"))}, "weir-controller-6b7d leads, and is no pod of namespace weir-system: where it runs, use --operator-url http://127.0.0.1:8082"},
		"no such right":   {apiServer{lease: held(holder, valid), refused: statusOf(apierrors.NewForbidden(pods, "weir-controller-6b7d", nil))}, "pod weir-system/weir-controller-6b7d leads, but you may not forward a port to it: that requires get and create of pods/portforward there"},
		"no such way":     {apiServer{lease: held(holder, valid), refused: statusOf(apierrors.NewInternalError(io.ErrUnexpectedEOF))}, "kubectl -n weir-system port-forward weir-controller-6b7d 8082, then use --operator-url"},
		"nothing listens": {apiServer{lease: held(holder, valid), pod: "127.0.0.1:1"}, "the leader's pod does not respond there: connection refused inside namespace; check the port of its --operator-bind-address"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &tt.apiServer
			api.t, api.asked = t, map[string]string{}
			server := httptest.NewServer(api)
			defer server.Close()
			var out strings.Builder
			err := app.PrintCalls(t.Context(), app.CallsOptions{Connection: Leader{API: &rest.Config{Host: server.URL, BearerToken: "jane"}, Namespace: "weir-system"}.Connection(), Out: &out})
			if tt.wantText == "" {
				if err != nil || !strings.Contains(out.String(), "load balancer kubernetes") {
					t.Errorf("%v, %s", err, &out)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.wantText) {
				t.Errorf("%v", err)
			}
			for path, token := range api.asked {
				if token != "Bearer jane" || !strings.HasPrefix(path, "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases/weir-controller") && path != "/api/v1/namespaces/weir-system/pods/weir-controller-6b7d/portforward" {
					t.Errorf("asked for %s with %q", path, token)
				}
			}
		})
	}
}
