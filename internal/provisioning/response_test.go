// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/internal/provisioning/charts"
	"weir.dev/weir/internal/provisioning/policy"
)

func repeatJSON(single string, n int) string {
	return "[" + strings.Repeat(single+",", n-1) + single + "]"
}

// Responses that decode into far larger objects are bounded.
func TestATargetTakesNoMemory(t *testing.T) {
	const core = `{"kind":"APIVersions","versions":["v1"]}`
	groups := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i))
		}
		return `{"kind":"APIGroupList","groups":[` + strings.Join(names, ",") + `]}`
	}
	none := `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`
	for name, tt := range map[string]struct {
		pods, groups, kinds, form string
		want                      string
	}{
		"pods":           {groups: groups(0), pods: repeatJSON("{}", 11_000), want: "response is too long"},
		"in other forms": {groups: groups(0), pods: "[]", form: "application/vnd.kubernetes.protobuf", want: "not in JSON"},
		"kinds":          {groups: groups(3), kinds: `{"kind":"APIResourceList","resources":` + repeatJSON("{}", 20_000) + `}`, want: "response is too long"},
		"words of kinds": {groups: groups(5), kinds: `{"kind":"APIResourceList","groupVersion":"` + strings.Repeat("x", 3<<20) + `"}`, want: "response is too long"},
		"groups":         {groups: groups(1100), kinds: none, want: "response is too long"},
		"versions":       {groups: `{"kind":"APIGroupList","groups":[{"name":"g","versions":` + repeatJSON("{}", 60_000) + `}]}`, kinds: none, want: "response is too long"},
		"none of it":     {pods: repeatJSON("{}", 3000), groups: groups(400), kinds: `{"kind":"APIResourceList","resources":` + repeatJSON(`{"name":"a, {b} \"c\\"}`, 50) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				answer := tt.kinds
				switch path := req.URL.Path; {
				case path == "/version":
					answer = `{"gitVersion":"v1.30.0"}`
				case path == "/api":
					answer = core
				case path == "/api/v1":
					answer = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`
				case path == "/apis":
					answer = tt.groups
				case strings.HasSuffix(path, "/pods"):
					answer = `{"kind":"PodList","apiVersion":"v1","items":` + tt.pods + `}`
				}
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(req.URL.Path, "/pods") && tt.form != "" {
					w.Header().Set("Content-Type", tt.form)
				}
				_, _ = io.WriteString(w, answer)
			}))
			server.EnableHTTP2 = true // otherwise the test opens a thousand connections
			server.StartTLS()
			t.Cleanup(server.Close)
			to := connectServer(t.Context(), t, server)
			var err error
			if tt.pods != "" {
				reader := JobLogReader{API: to, Pods: to.pods, Log: &policy.Log{}}
				_, err = reader.NewestPod(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", UID: "1"}})
			}
			if tt.groups != "" && err == nil {
				_, _, err = charts.ReadCapabilities(t.Context(), to.discovery)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %.300v, want %q", err, tt.want)
			}
		})
	}
}
