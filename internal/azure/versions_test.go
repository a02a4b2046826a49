// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure/codec"
)

// olderBody is Azure's rejection of an api-version older than a property.
func olderBody(named string) string {
	return errorBody(armerror.CodeOldAPIVersion, "Resource x cannot be updated using API version 2025-05-01 since it uses the property p which has been set using a higher API version "+named+".")
}

// versioned answers requests by api-version and number, and records them as METHOD version.
func versioned(t *testing.T, answer func(n int, method, version string) reply) (*Client, *fakeARM, func() string) {
	t.Helper()
	var log []string
	wire := &fakeARM{}
	wire.answer = func(n int, r *http.Request) reply {
		version := r.URL.Query().Get("api-version")
		log = append(log, r.Method+" "+version)
		return answer(n, r.Method, version)
	}
	return newClient(t, wire), wire, func() string { return strings.Join(log, ", ") }
}

// A write rejected because of a newer property is sent once more with the required api-version,
// after a new read. Later requests for the resource use it at once.
func TestAWriteWithANewerVersion(t *testing.T) {
	shown := func(version string) reply {
		extra := ""
		if version == "2025-09-01" {
			extra = `"newer":{"a":[1]},`
		}
		return reply{status: 200, body: strings.Replace(poolBody("Succeeded", "10.0.0.4"), `"properties":{`, `"properties":{`+extra, 1)}
	}
	client, wire, log := versioned(t, func(_ int, method, version string) reply {
		if method == http.MethodPut && version != "2025-09-01" {
			return reply{status: 400, body: olderBody("2025-09-01")}
		}
		return shown(version)
	})
	pool, err := client.GetPool(t.Context(), webPool)
	if err != nil {
		t.Fatal(err)
	}
	pool.Addresses = append(pool.Addresses, address("n2", "10.0.0.5"))
	written, err := client.PutPool(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if want := "GET 2025-05-01, PUT 2025-05-01, GET 2025-09-01, PUT 2025-09-01"; log() != want {
		t.Errorf("got %s, want %s", log(), want)
	}
	first, last := wire.calls[1], wire.calls[3]
	if strings.Contains(first.body, "newer") || !strings.Contains(last.body, `"newer":{"a":[1]}`) || !strings.Contains(last.body, "10.0.0.5") {
		t.Errorf("sent %s, then %s", first.body, last.body)
	}
	if first.header.Get("If-Match") != `W/"e1"` || last.header.Get("If-Match") != `W/"e1"` || wire.calls[2].header.Get("If-Match") != "" {
		t.Error("another guard than the etag of what the caller has read")
	}
	before := log()
	if _, err := client.PutPool(t.Context(), written); err != nil { // what was read with it is written with it
		t.Fatal(err)
	}
	if _, err := client.PutPool(t.Context(), pool); err != nil { // what was read before is read again
		t.Fatal(err)
	}
	if _, err := client.GetPool(t.Context(), poolID("s1", "kubernetes", "another")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetPool(t.Context(), poolID("s1", "other", "web")); err != nil {
		t.Fatal(err)
	}
	if want := before + ", PUT 2025-09-01, GET 2025-09-01, PUT 2025-09-01, GET 2025-09-01, GET 2025-05-01"; log() != want {
		t.Errorf("got %s, want %s", log(), want)
	}
}

// A write is sent at most twice, and only if the provider supports the api-version.
func TestAWriteThatStaysRejectedForItsVersion(t *testing.T) {
	got := reply{status: 200, body: poolBody("Succeeded", "10.0.0.4")}
	lacking := reply{status: 400, body: errorBody("NoRegisteredProviderFound", "No registered resource provider found for API version '2031-01-01'. The supported api-versions are '2025-05-01'.")}
	for name, tt := range map[string]struct {
		rejection     string
		read, write   reply // with the newer api-version
		want          string
		class         armerror.Class
		code          string
		namesProperty bool
	}{
		"no newer one is named":    {olderBody("2025-05-01"), got, got, "PUT 2025-05-01", armerror.Terminal, armerror.CodeOldAPIVersion, true},
		"a preview is named":       {olderBody("2031-01-01-preview"), got, got, "PUT 2025-05-01", armerror.Terminal, armerror.CodeOldAPIVersion, true},
		"no version is named":      {errorBody(armerror.CodeOldAPIVersion, "no."), got, got, "PUT 2025-05-01", armerror.Terminal, armerror.CodeOldAPIVersion, false},
		"the code is another":      {strings.Replace(olderBody("2031-01-01"), armerror.CodeOldAPIVersion, "InvalidParameter", 1), got, got, "PUT 2025-05-01", armerror.Terminal, "InvalidParameter", true},
		"the provider lacks it":    {olderBody("2031-01-01"), lacking, got, "PUT 2025-05-01, GET 2031-01-01", armerror.Terminal, armerror.CodeOldAPIVersion, true},
		"the provider is busy":     {olderBody("2031-01-01"), reply{status: 429, body: subBody}, got, "PUT 2025-05-01, GET 2031-01-01", armerror.Retriable, "SubscriptionRequestsThrottled", false},
		"the resource is gone":     {olderBody("2031-01-01"), reply{status: 404, body: errorBody("NotFound", "gone")}, got, "PUT 2025-05-01, GET 2031-01-01", armerror.Stale, "NotFound", false},
		"another client has it":    {olderBody("2031-01-01"), got, reply{status: 412, body: errorBody("PreconditionFailed", "no")}, "PUT 2025-05-01, GET 2031-01-01, PUT 2031-01-01", armerror.Retriable, "PreconditionFailed", false},
		"a still newer one":        {olderBody("2031-01-01"), got, reply{status: 400, body: olderBody("2032-01-01")}, "PUT 2025-05-01, GET 2031-01-01, PUT 2031-01-01", armerror.Terminal, armerror.CodeOldAPIVersion, true},
		"it is rejected as before": {olderBody("2031-01-01"), got, reply{status: 400, body: olderBody("2031-01-01")}, "PUT 2025-05-01, GET 2031-01-01, PUT 2031-01-01", armerror.Terminal, armerror.CodeOldAPIVersion, true},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, log := versioned(t, func(_ int, method, version string) reply {
				switch {
				case version == networkAPIVersion && method == http.MethodPut:
					return reply{status: 400, body: tt.rejection}
				case method == http.MethodPut:
					return tt.write
				}
				return tt.read
			})
			pool, err := codec.DecodePool(webPool, codec.Document{Version: networkAPIVersion, Text: []byte(poolBody("Succeeded", "10.0.0.4"))})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.PutPool(t.Context(), pool)
			f := wantFault(t, err, tt.class, tt.code)
			if log() != tt.want {
				t.Errorf("got %s, want %s", log(), tt.want)
			}
			if tt.namesProperty && !strings.Contains(f.Error(), "the property p") {
				t.Errorf("the message does not name the property: %s", f)
			}
			if tt.code == armerror.CodeOldAPIVersion && !strings.Contains(f.Error(), "another tool") {
				t.Errorf("the message does not say whose it is: %s", f)
			}
		})
	}
}

// A pool read with an older api-version than its load balancer uses the load balancer's properties.
func TestPoolsOfALoadBalancerThatIsWrittenWithANewerVersion(t *testing.T) {
	body := func(version string) string {
		if version == networkAPIVersion {
			return strings.Replace(busyBalancer, `"drainPeriodInSeconds"`, `"drainPeriodInSecondsThatIsHidden"`, 1)
		}
		return busyBalancer
	}
	client, wire, _ := versioned(t, func(_ int, method, version string) reply {
		if method == http.MethodPut && version == networkAPIVersion {
			return reply{status: 400, body: olderBody("2025-09-01")}
		}
		return reply{status: 200, body: body(version)}
	})
	b, err := client.GetLoadBalancer(t.Context(), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	b.Tags = map[string]string{"changed": "yes"}
	if _, err := client.PutLoadBalancer(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	last := wire.calls[len(wire.calls)-1]
	if !strings.Contains(last.body, `"drainPeriodInSeconds":`) || !strings.Contains(last.body, `"changed":"yes"`) {
		t.Errorf("sent %s", last.body)
	}
}
