// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/config"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

func newClient(t *testing.T, handler http.Handler) *azure.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	endpoint, credential, err := azure.LocalEndpoint(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: server.Client(), Retry: azure.Retry{Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// The logical zones of each region are read; anything else than a list of locations is an error.
func TestListZones(t *testing.T) {
	for about, tt := range map[string]struct {
		status   int
		answer   string
		want     map[string][]string
		wantText string
	}{
		"two regions": {200, `{"value":[{"name":"eastus2","displayName":"East US 2","availabilityZoneMappings":[
			{"logicalZone":"3","physicalZone":"eastus2-az1"},{"logicalZone":"1","physicalZone":"eastus2-az3"}]},{"name":"westus"}]}`,
			map[string][]string{"eastus2": {"1", "3"}, "westus": nil}, ""},
		"no right":    {403, `{"error":{"code":"AuthorizationFailed","message":"does not have authorization"}}`, nil, "403 AuthorizationFailed: does not have authorization"},
		"not there":   {404, `{"error":{"code":"NotFound","message":"no"}}`, nil, "404 NotFound"},
		"no list":     {200, `{}`, nil, "no list of locations"},
		"not JSON":    {200, `<html>`, nil, ""},
		"other zones": {200, `{"value":[{"name":"eastus","availabilityZoneMappings":[{"logicalZone":"a/b"}]}]}`, nil, `zones of location "eastus" are not valid`},
	} {
		client := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/subscriptions/s1/locations" || r.URL.Query().Get("api-version") == "" {
				t.Errorf("%s: asked for is %s %s", about, r.Method, r.URL)
			}
			w.WriteHeader(tt.status)
			_, _ = w.Write([]byte(tt.answer))
		}))
		got, err := azure.ListZones(t.Context(), client, "s1")
		if (err != nil) != (tt.want == nil) || err != nil && !strings.Contains(err.Error(), tt.wantText) || err == nil && !maps.EqualFunc(got, tt.want, func(a, b []string) bool { return len(a)+len(b) == 0 || reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: %v, %v", about, got, err)
		}
	}
}

// The role that is shipped permits the read.
func TestTheRolePermitsTheRead(t *testing.T) {
	raw, err := config.Roles.ReadFile("azure-role.json")
	if err != nil {
		t.Fatal(err)
	}
	role, err := armemu.ParseRole(raw)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, patient.Watch(t, armemu.New(armemu.Options{Role: role, Zones: []string{"1", "2", "3"}})))
	got, err := azure.ListZones(t.Context(), client, "s1")
	if err != nil || !reflect.DeepEqual(got["eastus"], []string{"1", "2", "3"}) {
		t.Errorf("%v, %v", got, err)
	}
}
