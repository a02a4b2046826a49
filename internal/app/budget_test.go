// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

func TestBudget(t *testing.T) {
	const balancer = "/subscriptions/S1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/lb"
	now := time.Now()
	log, writes := requestlog.New(1<<20), ratelimit.New(0.5, 30*time.Second)
	for i, c := range []requestlog.Call{
		{Op: "put", Resource: balancer + "/backendAddressPools/web"}, {Op: "get", Resource: balancer + "/backendAddressPools/web"},
		{Op: "put", Resource: balancer + "/backendAddressPools/api"}, {Op: "poll", Resource: balancer + "/backendAddressPools/api"},
		{Op: "put", Resource: balancer}, {Op: "post", Resource: balancer + "/loadBalancingRules/r"},
		{Op: "delete", Resource: "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/ip"},
		{Op: "put", Resource: "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/v"}, {Op: "token"},
	} {
		c.At = now.Add(-time.Duration(i) * time.Second)
		log.Add(c)
	}
	for range 5 {
		writes.CountWrite("S1", now)
	}
	writes.SetRemaining("s1", ratelimit.Remaining{Caller: 150, Subscription: -1}, now)
	server := httptest.NewServer(serveBudget(log, writes))
	defer server.Close()
	printed := func(asJSON bool) string {
		t.Helper()
		var out strings.Builder
		if err := PrintBudget(t.Context(), Connection{Server: server.URL}, asJSON, &out); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	expect := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in:\n%s", part, text)
			}
		}
	}
	expect(printed(false), "Subscription s1,", "Share: 500, the 50 % of loadBalancerBackendPoolUpdateWriteSharePercent", "Spent: 5; of the other 495, 75 can be sent at once: Resource Manager refills", "Others: unknown", "Bucket per caller: 150 of 200 left", "others 50",
		"backend pools 2 1 ", "load balancers 1 0", "health 1 0", "public IPs 1 0", "ends of writes 0 1")
	writes.RecordThrottle("s1", ratelimit.Throttle{Until: now.Add(4 * time.Minute), Network: true}, now)
	expect(printed(false), "Share: 150, lowered from 500: 429 for the quota of Microsoft.Network", "used up until", "Others: about 995")
	var report BudgetReport
	if err := json.Unmarshal([]byte(printed(true)), &report); err != nil || len(report.Subscriptions) != 1 || report.Subscriptions[0].Throttles != 1 || report.Subscriptions[0].Configured != 500 {
		t.Errorf("%v: %+v", err, report)
	}
}

func TestBudgetWithoutController(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, budgetPath, nil)
	r.Host = "weir.example"
	w := httptest.NewRecorder()
	serveBudget(requestlog.New(1), ratelimit.New(0.5, time.Minute)).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a foreign host gets %d", w.Code)
	}
	server := httptest.NewServer(serveBudget(requestlog.New(1), ratelimit.New(0.5, time.Minute)))
	defer server.Close()
	var out strings.Builder
	if err := PrintBudget(t.Context(), Connection{Server: server.URL}, false, &out); err != nil || !strings.Contains(out.String(), "leader") {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := PrintBudget(t.Context(), Connection{Server: "ftp://x"}, false, &out); !isUsageError(err) {
		t.Errorf("%v", err)
	}
}

func isUsageError(err error) bool { return errors.As(err, new(*UsageError)) }
