// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tableOf is an API server's response to kubectl get.
const tableOf = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[
	{"name":"Name","type":"string"},{"name":"Load balancer","type":"string"},{"name":"Desired","type":"integer"},
	{"name":"State","type":"string"},{"name":"Parked until","type":"string","priority":1}],
	"rows":[{"cells":["web","kubernetes",12,"Retrying","2026-01-02T15:04:05Z"]},{"cells":["api","kubernetes",3,"Retrying",null]}]}`

func clusterAnswering(t *testing.T, status int, body string) *cluster {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if want := "application/json;as=Table;v=v1;g=meta.k8s.io"; req.Header.Get("Accept") != want {
			t.Errorf("Accept: %s", req.Header.Get("Accept"))
		}
		if req.URL.Path != "/apis/weir.dev/v1alpha1/namespaces/shop/backendpools" {
			t.Errorf("asked for %s", req.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(api.Close)
	return &cluster{http: api.Client(), host: api.URL}
}

func TestTheTableIsTheServers(t *testing.T) {
	pools, err := clusterAnswering(t, http.StatusOK, tableOf).backendPools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		columns int
		want    string
	}{
		{80, "NAME   LOAD BALANCER   DESIRED   STATE      PARKED UNTIL|" +
			"web    kubernetes      12        Retrying   2026-01-02T15:04:05Z|" +
			"api    kubernetes      3         Retrying"},
		{50, "NAME   DESIRED   STATE      PARKED UNTIL|web    12        Retrying   2026-01-02T15:04:05Z|api    3         Retrying"},
		{10, "NAME   STATE      PARKED UNTIL|web    Retrying   2026-01-02T15:04:05Z|api    Retrying"}, // no more spare columns
	} {
		if got := strings.Join(pools.formatLines(c.columns, "NONE SUCH", "LOAD BALANCER", "DESIRED"), "|"); got != c.want {
			t.Errorf("%d columns:\n%s", c.columns, strings.ReplaceAll(got, "|", "\n"))
		}
	}
	if !pools.allEqual("STATE", "Retrying") || pools.allEqual("DESIRED", "3") || pools.allEqual("NONE SUCH", "x") || (table{}).allEqual("STATE", "Retrying") {
		t.Error("all is not all")
	}
}

func TestUnreadableTable(t *testing.T) {
	for status, body := range map[int]string{http.StatusForbidden: tableOf, http.StatusOK: "not JSON"} {
		if pools, err := clusterAnswering(t, status, body).backendPools(t.Context()); err == nil {
			t.Errorf("%d %q: %v", status, body, pools)
		}
	}
}

func TestParkedTogether(t *testing.T) {
	for _, c := range []struct {
		until    []string
		together bool
	}{
		{nil, false},
		{[]string{"2026-01-02T15:04:05Z", ""}, false},
		{[]string{"2026-01-02T15:04:05Z", "2026-01-02T15:04:07Z"}, false},
		{[]string{"2026-01-02T15:04:07Z", "2026-01-02T15:04:05Z"}, false},
		{[]string{"2026-01-02T15:04:05Z", "2026-01-02T15:04:06Z", "2026-01-02T15:04:05Z"}, true},
	} {
		pools := table{header: []string{"PARKED UNTIL"}}
		for _, u := range c.until {
			pools.rows = append(pools.rows, []string{u})
		}
		if pools.sameTime("PARKED UNTIL") != c.together {
			t.Errorf("%v", c.until)
		}
	}
}

func TestEventsAsKubectlShowsThem(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	e := &corev1.Event{
		Type: "Warning", Reason: reasonRetrying, Message: "Backend pool update failed:\n429. Another attempt follows.", Count: 2,
		InvolvedObject: corev1.ObjectReference{Kind: "Service", Name: "web"}, LastTimestamp: metav1.NewTime(at),
	}
	want := `12s   Warning  LoadBalancerBackendPoolUpdateRetrying  service/web
      Backend pool update failed: 429. Another attempt
      follows.`
	if got := strings.Join(eventLines(e, at.Add(12*time.Second), 60), "\n"); got != want {
		t.Errorf("\n%s", got)
	}
	if got := eventLines(e, at.Add(-time.Second), 60)[0]; !strings.HasPrefix(got, "0s ") {
		t.Errorf("%s", got)
	}
	other := corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Service", Name: "db"}}
	if n := countByService([]corev1.Event{*e, other, *e}); n["web"] != 4 || n["db"] != 1 || len(n) != 2 {
		t.Errorf("%v", n)
	}
}
