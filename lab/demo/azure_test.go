// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
)

func (o *observer) mustLook(t *testing.T) {
	t.Helper()
	if err := o.pollAzure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// writePool puts a pool with the addresses 10.0.0.<host> as an ARM client.
func writePool(t *testing.T, emu *armemu.Emulator, pool string, hosts ...int) int {
	t.Helper()
	return writePoolAs(t, emu, "any", pool, hosts...)
}

// writePoolAs is writePool with a caller's token.
func writePoolAs(t *testing.T, emu *armemu.Emulator, token, pool string, hosts ...int) int {
	t.Helper()
	var entries []string
	for ip, name := range addressSet(hosts...) {
		entries = append(entries, fmt.Sprintf(`{"name":%q,"properties":{"ipAddress":%q}}`, name, ip))
	}
	body := fmt.Sprintf(`{"properties":{"virtualNetwork":{"id":"%svirtualNetworks/vnet"},"loadBalancerBackendAddresses":[%s]}}`, provider, strings.Join(entries, ","))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPut,
		provider+"loadBalancers/kubernetes/backendAddressPools/"+pool+"?api-version=2025-05-01", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	emu.ServeHTTP(rec, req)
	return rec.Code
}

func TestSeededResourcesAreInSyncWithAnEmptyCluster(t *testing.T) {
	_, o := emptyAzure(t)
	o.mustLook(t)
	pools := o.poolStates()
	if got := formatPoolStates(pools); !allInSync(pools) || got != "web 0/0         api 0/0         db 0/0" {
		t.Errorf("%q", got)
	}
	if calls := o.currentTraffic(); calls.Reads+calls.Writes+calls.Polls != 0 {
		t.Errorf("looking counts: %v", calls)
	}
}

func TestTheObserverComparesBothSides(t *testing.T) {
	emu, o := azureWithWorkloads(t)
	o.recordDesired("web", time.Now(), addressSet(1, 2, 3))
	o.recordDesired("db", time.Now(), addressSet(4))
	if code := writePool(t, emu, "shop-web", 2, 3, 9); code >= 300 {
		t.Fatal(code)
	}
	if code := writePool(t, emu, "shop-db", 4); code >= 300 {
		t.Fatal(code)
	}
	o.mustLook(t)
	pools := o.poolStates()
	if got := formatPoolStates(pools); got != "web 2/3 +1      api 0/0         db 1/1" {
		t.Errorf("%q", got)
	}
	for i, want := range []string{
		"pool shop-web lacks 10.0.0.1 (node-1); still holds 10.0.0.9 (node-9)", "",
		"pool shop-db lost foreign 10.225.0.10 (somebody-elses)",
	} {
		if got := o.describeDiff(pools[i]); want != "" && (pools[i].isInSync || got != want) {
			t.Errorf("in sync %v: %s, want %s", pools[i].isInSync, got, want)
		}
	}
	calls := o.currentTraffic()
	if calls.Writes != 2 || calls.pools["shop-web"].writes != 1 {
		t.Errorf("%+v", calls)
	}
	o.mustLook(t)
	if second := o.currentTraffic(); second.Writes != calls.Writes {
		t.Errorf("a call was counted twice: %v", second)
	}
	total, of, _ := o.newSummaries(time.Now())
	if wrong := (Summary{Total: total}).failureText(); wrong != "1 address lost, 1 address that should not be there, 1 foreign address lost" || of[0].Writes != 1 {
		t.Errorf("%q %+v", wrong, of)
	}
}
