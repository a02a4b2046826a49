// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

const newest = "?api-version=2025-09-01"

// Since 2025-01-01.
func TestScope(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	withAddresses(t, emu)
	for name, want := range map[string]string{"public": `"scope":"Public"`, "private": `"scope":"Private"`} {
		id, frontend := group+"/loadBalancers/"+name, publicFrontend("fe", "a")
		if name == "private" {
			frontend = privateFrontend("fe", nodesID, "")
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, id, strings.Replace(withFrontends(frontend), `"properties":{`, `"properties":{"scope":"Other",`, 1)))
		if a := sendRequest(t, emu, http.MethodGet, id, ""); !strings.Contains(a.raw, want) {
			t.Errorf("%s: no %s in %s", name, want, a.raw)
		}
		if a := sendRequest(t, emu, http.MethodGet, id+"?api-version=2024-10-01", ""); strings.Contains(a.raw, "scope") {
			t.Errorf("%s: an older api-version shows the scope: %s", name, a.raw)
		}
	}
	if a := sendRequest(t, emu, http.MethodGet, group+"/loadBalancers?api-version=2024-10-01", ""); strings.Contains(a.raw, "scope") || !strings.Contains(a.raw, "private") {
		t.Errorf("a list of an older api-version shows the scope: %s", a.raw)
	}
}

func TestOlderVersion(t *testing.T) {
	for _, row := range []struct {
		option armemu.OlderVersionPolicy
		status int
		keeps  bool
	}{{"", 400, true}, {armemu.RejectOlderVersion, 400, true}, {armemu.ResetNewProperties, 200, false}, {armemu.KeepNewProperties, 200, true}} {
		emu := newCloud(t, armemu.Options{OlderVersion: row.option})
		withAddresses(t, emu)
		tracked := strings.Replace(publicFrontend("fe", "a"), `"properties":{`, `"properties":{"enableConnectionTracking":true,`, 1)
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB+newest, withFrontends(tracked, privateFrontend("in", nodesID, ""))))
		if a := sendRequest(t, emu, http.MethodGet, otherLB, ""); strings.Contains(a.raw, "enableConnectionTracking") {
			t.Errorf("%s: 2025-05-01 shows a property of 2025-09-01: %s", row.option, a.raw)
		}
		a := sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("in", nodesID, ""), publicFrontend("fe", "a")))
		if a.status != row.status {
			t.Errorf("%s: %d %s", row.option, a.status, a.raw)
		}
		if a.status == 400 && (a.errorCode() != "UpdateOnResourceNotAllowedWithApiVersion" || !strings.Contains(a.raw, "higher API version 2025-09-01") || !strings.Contains(a.raw, "frontendIPConfigurations[].properties.enableConnectionTracking")) {
			t.Errorf("%s: %s", row.option, a.raw)
		}
		shown := sendRequest(t, emu, http.MethodGet, otherLB+newest, "")
		if got := strings.Contains(shown.raw, `"enableConnectionTracking":true`); got != row.keeps {
			t.Errorf("%s: the property is there: %t, want %t: %s", row.option, got, row.keeps, shown.raw)
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB+newest, withFrontends(tracked)))
	}
	emu := newCloud(t, armemu.Options{})
	withAddresses(t, emu)
	a := sendRequest(t, emu, http.MethodPut, otherLB, strings.Replace(withFrontends(publicFrontend("fe", "a")), `"properties":{`, `"properties":{"mode":"Advanced",`, 1))
	expectRejected(t, a, 400, "ModeCannotBeSpecifiedForApiVersion")
}

func TestDeletionTakesInterfacesOutOfPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		withAddresses(t, emu)
		user := group + "/loadBalancers/user"
		putResource(t, emu, nics+"nic", nicInPools("", userPool("p")))
		expectAccepted(t, sendRequest(t, emu, http.MethodDelete, user, ""))
		time.Sleep(time.Minute)
		if a := sendRequest(t, emu, http.MethodGet, user, ""); a.status != 404 {
			t.Errorf("the load balancer: %d", a.status)
		}
		if a := sendRequest(t, emu, http.MethodGet, nics+"nic", ""); a.status != 200 || strings.Contains(a.raw, userPool("p")) {
			t.Errorf("the interface still names a pool: %s", a.raw)
		}
	})
}

func TestHideDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, hides := range []bool{false, true} {
			emu := newCloud(t, armemu.Options{LatencyScale: 1, HideDeleted: hides})
			withAddresses(t, emu)
			expectAccepted(t, sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("fe", nodesID, "10.0.0.77"))))
			expectAccepted(t, sendRequest(t, emu, http.MethodDelete, otherLB, ""))
			want := http.StatusOK
			if hides {
				want = http.StatusNotFound
			}
			if a := sendRequest(t, emu, http.MethodGet, otherLB, ""); a.status != want {
				t.Errorf("hidden %t: GET answers %d during the deletion", hides, a.status)
			}
			if a := sendRequest(t, emu, http.MethodGet, group+"/loadBalancers", ""); strings.Contains(a.raw, otherLB+`"`) == hides {
				t.Errorf("hidden %t: the list has %s", hides, a.raw)
			}
			second := sendRequest(t, emu, http.MethodPut, otherLB, withFrontends(privateFrontend("fe", nodesID, "10.0.0.77")), "If-None-Match", "*")
			if hides {
				expectRejected(t, second, 400, "PrivateIPAddressInUse")
			} else {
				expectRejected(t, second, 412, "PreconditionFailed")
			}
			next := group + "/loadBalancers/next"
			expectRejected(t, sendRequest(t, emu, http.MethodPut, next, withFrontends(privateFrontend("fe", nodesID, "10.0.0.77"))), 400, "PrivateIPAddressIsAllocated")
			time.Sleep(time.Minute)
			expectAccepted(t, sendRequest(t, emu, http.MethodPut, next, withFrontends(privateFrontend("fe", nodesID, "10.0.0.77"))))
		}
	})
}

// A new Retry-After follows, even after a client restart. Other request classes and callers are not
// affected.
func TestEarlyCallsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{})
		setFaults(t, emu, `rules: [{match: {kind: put, nth: 1}, action: {status: 429, code: TooManyRequests, headers: {Retry-After: "17"}}}]`)
		expectRejected(t, sendRequest(t, emu, http.MethodPut, poolID, poolBody()), 429, "TooManyRequests")
		time.Sleep(10 * time.Second)
		emu.ResetRetryAfter()
		a := sendRequest(t, emu, http.MethodPut, poolID, poolBody())
		expectRejected(t, a, 429, "TooManyRequests")
		if got := a.header.Get("Retry-After"); got != "7" {
			t.Errorf("Retry-After %q after 10 s of 17", got)
		}
		if len(emu.EarlyCalls()) > 0 {
			t.Errorf("a client that begins anew is blamed: %v", emu.EarlyCalls())
		}
		expectAccepted(t, sendRequest(t, emu, http.MethodGet, poolID, ""))
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, poolID, poolBody(), "Authorization", "Bearer another"))
		time.Sleep(7 * time.Second)
		expectAccepted(t, sendRequest(t, emu, http.MethodPut, poolID, poolBody()))
	})
}

func TestNetworkWindowIsOfARegion(t *testing.T) {
	emu := newCloud(t, armemu.Options{Throttle: &armemu.Limits{NetworkWrites: 2, NetworkWindow: time.Minute}})
	east, west := lb("Standard", ""), strings.Replace(lb("Standard", ""), "eastus", "westus", 1)
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, group+"/loadBalancers/a", east))
	expectAccepted(t, sendRequest(t, emu, http.MethodDelete, group+"/loadBalancers/a", ""))
	expectRejected(t, sendRequest(t, emu, http.MethodPut, group+"/loadBalancers/b", east), 429, "TooManyRequests")
	expectAccepted(t, sendRequest(t, emu, http.MethodPut, group+"/loadBalancers/c", west))
}
