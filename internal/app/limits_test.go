// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"weir.dev/weir/internal/loadbalancer/plan"
)

func TestFetchLimits(t *testing.T) {
	usages := []plan.LimitUsage{{Resource: "kubernetes", Name: plan.LimitRules, Was: 200, Used: 200, Max: 250}}
	h := serveLimits(func() []plan.LimitUsage { return usages })
	server := httptest.NewServer(h)
	defer server.Close()
	for range 2 {
		if got, err := FetchLimits(t.Context(), Connection{Server: server.URL}); err != nil || !slices.Equal(got, usages) {
			t.Errorf("%+v, %v", got, err)
		}
		usages = nil
	}
	foreign := httptest.NewRequest(http.MethodGet, limitsPath, http.NoBody)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, foreign); w.Code != http.StatusForbidden {
		t.Errorf("with a foreign Host: %d", w.Code)
	}
}
