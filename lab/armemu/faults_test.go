// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/lab/armemu"
)

func TestFaultActions(t *testing.T) {
	cases := []struct {
		name, script string
		status       int
		code         string
		contains     string
		applied      bool
	}{
		{
			name:   "a status with code, details and headers",
			script: `rules: [{match: {method: PUT}, action: {status: 429, code: TooManyRequests, message: slow down, details: [{code: Inner, message: deep}], headers: {Retry-After: "17"}}}]`,
			status: 429, code: "TooManyRequests", contains: `"message":"deep"`,
		},
		{
			name:   "a status alone names itself",
			script: `rules: [{match: {method: PUT}, action: {status: 503}}]`,
			status: 503, code: "ServiceUnavailable",
		},
		{
			name:   "a raw body",
			script: `rules: [{match: {method: PUT}, action: {status: 502, body: "<html>bad gateway</html>", headers: {Content-Type: text/html}}}]`,
			status: 502, contains: "<html>bad gateway</html>",
		},
		{
			name:   "applied, answered with an error",
			script: `rules: [{match: {method: PUT}, action: {status: 500, code: InternalServerError, applied: true}}]`,
			status: 500, code: "InternalServerError", applied: true,
		},
		{
			name:   "headers alone",
			script: `rules: [{match: {method: PUT}, action: {headers: {x-extra: "1"}}}]`,
			status: 200, contains: "Updating", applied: true,
		},
		{
			name:   "another writer first",
			script: `rules: [{match: {method: PUT}, action: {bumpEtag: true}}]`,
			status: 412, code: "PreconditionFailed",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			emu := newCloud(t, armemu.Options{})
			etag := sendRequest(t, emu, http.MethodGet, poolID, "").stringField("etag")
			setFaults(t, emu, c.script)
			a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"), "If-Match", etag)
			if a.status != c.status || a.errorCode() != c.code || !strings.Contains(a.raw, c.contains) {
				t.Errorf("got %d %s", a.status, a.raw)
			}
			if c.status >= 400 && a.header.Get("Azure-AsyncOperation") != "" {
				t.Error("an error leads to an operation")
			}
			if applied := len(poolIPs(t, emu, poolID)) == 1; applied != c.applied {
				t.Errorf("applied is %v", applied)
			}
			if log := emu.Calls(armemu.ByKind(armemu.KindPut)); log[0].Fault != "rules[0]" || log[0].Status != c.status || log[0].ErrorCode != c.code {
				t.Errorf("logged as %+v", log[0])
			}
		})
	}
}

func TestFaultRetryAfterHeader(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	setFaults(t, emu, `rules: [{action: {status: 429, headers: {Retry-After: "17"}}}]`)
	if a := sendRequest(t, emu, http.MethodGet, poolID, ""); a.header.Get("Retry-After") != "17" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
}

func TestDroppedConnections(t *testing.T) {
	for script, applied := range map[string]bool{
		`rules: [{match: {kind: put}, action: {drop: true}}]`:                false,
		`rules: [{match: {kind: put}, action: {drop: true, applied: true}}]`: true,
	} {
		emu := newCloud(t, armemu.Options{})
		setFaults(t, emu, script)
		_, err := trySend(t.Context(), emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", script, err)
		}
		if got := len(poolIPs(t, emu, poolID)) == 1; got != applied {
			t.Errorf("%s: applied is %v", script, got)
		}
		if c := emu.Calls()[0]; !c.Dropped || c.Status != 0 {
			t.Errorf("%s: logged as %+v", script, c)
		}
	}
}

func TestTruncatedBody(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	setFaults(t, emu, `rules: [{action: {truncateBody: 10}}]`)
	a, err := trySend(t.Context(), emu, http.MethodGet, poolID, "")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(a.raw) != 10 {
		t.Errorf("%d bytes, then %v", len(a.raw), err)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{})
		setFaults(t, emu, `rules: [{match: {kind: put}, action: {delay: 90s}}]`)
		start := time.Now()
		other := make(chan time.Duration, 1)
		go func() {
			time.Sleep(time.Second)
			_, err := trySend(t.Context(), emu, http.MethodGet, poolID, "")
			if err != nil {
				t.Error(err)
			}
			other <- time.Since(start)
		}()
		if a := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1")); a.status != 200 || time.Since(start) != 90*time.Second {
			t.Errorf("%d after %v", a.status, time.Since(start))
		}
		if elapsed := <-other; elapsed != time.Second {
			t.Errorf("a delayed write held up a read until %v", elapsed)
		}
	})
}

func TestOperationFaults(t *testing.T) {
	write := func(t *testing.T, script string) (*armemu.Emulator, error) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		setFaults(t, emu, script)
		pools := newClients(t, emu.Transport(), "http://emulator.test").NewLoadBalancerBackendAddressPoolsClient()
		_, err := putPool(t.Context(), pools, "web", ipPool(address("a", "10.0.0.1")))
		return emu, err
	}
	inBubble := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	inBubble("fails", func(t *testing.T) {
		emu, err := write(t, `rules: [{match: {kind: put}, action: {operation: {fail: {code: AllocationFailed, details: [{code: Why}]}}}}]`)
		wantError(t, err, 200, "AllocationFailed")
		if a := sendRequest(t, emu, http.MethodGet, poolID, ""); a.provisioningState() != "Failed" || len(poolIPs(t, emu, poolID)) != 0 {
			t.Errorf("after the failure: %s", a.raw)
		}
	})
	inBubble("fails, applied", func(t *testing.T) {
		emu, err := write(t, `rules: [{match: {kind: put}, action: {applied: true, operation: {fail: {code: InternalServerError}}}}]`)
		wantError(t, err, 200, "InternalServerError")
		if len(poolIPs(t, emu, poolID)) != 1 {
			t.Error("the content that was written is gone")
		}
	})
	inBubble("stuck", func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		setFaults(t, emu, `rules: [{match: {kind: put, nth: 1}, action: {operation: {stuck: true}}}]`)
		sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		time.Sleep(24 * time.Hour)
		if a := sendRequest(t, emu, http.MethodGet, poolID, ""); a.provisioningState() != "Updating" {
			t.Errorf("after a day: %s", a.provisioningState())
		}
		sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
		time.Sleep(time.Hour)
		if a := sendRequest(t, emu, http.MethodGet, poolID, ""); a.provisioningState() != "Succeeded" {
			t.Errorf("after another write: %s", a.provisioningState())
		}
	})
	inBubble("429 on polls", func(t *testing.T) {
		emu, err := write(t, `rules: [{match: {kind: put}, action: {polls: {status: 429, times: 2, retryAfter: 7s}}}]`)
		wantError(t, err, 429, "TooManyRequests")
		if r, ok := errors.AsType[*azcore.ResponseError](err); !ok || r.RawResponse.Header.Get("Retry-After") != "7" {
			t.Errorf("%v", err)
		}
		async := sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.2")).header.Get("Azure-AsyncOperation")
		for poll, want := range []int{429, 429, 200} {
			if a := sendRequest(t, emu, http.MethodGet, async, ""); a.status != want {
				t.Errorf("poll %d: %d, want %d", poll, a.status, want)
			}
		}
	})
}

func TestFaultMatching(t *testing.T) {
	pattern := func(t *testing.T, match string) string {
		var out strings.Builder
		synctest.Test(t, func(t *testing.T) {
			emu := newCloud(t, armemu.Options{Seed: 11})
			setFaults(t, emu, `rules: [{match: {`+match+`}, action: {status: 500}}]`)
			for i := range 12 {
				target, client := poolID, "weir/1.0 azsdk-go"
				if i%3 == 2 {
					target, client = vnetID, "terraform"
				}
				if sendRequest(t, emu, http.MethodGet, target, "", "User-Agent", client).status == 500 {
					out.WriteString("x")
				} else {
					out.WriteString(".")
				}
				time.Sleep(time.Second)
			}
		})
		return out.String()
	}
	for match, want := range map[string]string{
		``:                              "xxxxxxxxxxxx",
		`method: PUT`:                   "............",
		`kind: get, maxMatches: 2`:      "xx..........",
		`userAgent: "weir/"`:            "xx.xx.xx.xx.",
		`userAgent: "terra", nth: 2`:    ".....x......",
		`nth: 3`:                        "..x.........",
		`every: 4`:                      "...x...x...x",
		`path: "backendAddressPools/*"`: "xx.xx.xx.xx.",
		`path: "/SUBSCRIPTIONS/*/resourcegroups/rg/**/WEB"`:        "xx.xx.xx.xx.",
		`path: "/subscriptions/*/virtualNetworks/*"`:               "............",
		`path: "virtualNetworks/*", nth: 2`:                        ".....x......",
		`after: 3s, until: 6s`:                                     "...xxx......",
		`path: "virtualNetworks/*", every: 2, after: 3s`:           "........x...",
		`probability: 1, path: "virtualNetworks/*", maxMatches: 1`: "..x.........",
	} {
		if got := pattern(t, match); got != want {
			t.Errorf("%-60s %s, want %s", match, got, want)
		}
	}
	some := pattern(t, "probability: 0.5")
	if some != pattern(t, "probability: 0.5") {
		t.Error("the same seed fires at other requests")
	}
	if n := strings.Count(some, "x"); n < 2 || n > 10 {
		t.Errorf("a probability of one half fires as %s", some)
	}
}

// The other rules still count.
func TestFirstRuleActs(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	setFaults(t, emu, `rules: [{name: one, match: {nth: 1}, action: {status: 500}}, {match: {nth: 2}, action: {status: 503}}]`)
	var got []int
	for range 3 {
		got = append(got, sendRequest(t, emu, http.MethodGet, poolID, "").status)
	}
	if diff := cmp.Diff([]int{500, 503, 200}, got); diff != "" {
		t.Error(diff)
	}
	if emu.Calls()[0].Fault != "one" || emu.Stats().Faults != 2 {
		t.Errorf("%+v", emu.Stats())
	}
	setFaults(t, emu, "")
	if emu.Faults() != "" {
		t.Error("the script is still there")
	}
}
