// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

func TestEmulator(t *testing.T) {
	for _, raw := range []string{"http://127.0.0.1:8080", "http://127.0.0.1:8080/", "http://localhost:1", "https://[::1]:8443", "http://127.9.9.9:80"} {
		e, cred, err := LocalEndpoint(raw)
		if err != nil || cred == nil || e.ResourceManager != strings.TrimSuffix(raw, "/") {
			t.Errorf("%s: %+v, %v", raw, e, err)
			continue
		}
		wire := &fakeARM{answer: replySequence(shown)}
		client := newClient(t, wire, func(o *Options) { o.Endpoint, o.Credential = e, cred })
		if _, err := client.GetPool(t.Context(), webPool); err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if got := wire.calls[0].header.Get("Authorization"); got != "Bearer weir-emulator" {
			t.Errorf("%s: Authorization %q", raw, got)
		}
	}
	for raw, problem := range map[string]string{
		"http://10.0.0.1:8080":             "not a loopback address",
		"https://management.azure.com:443": "not a loopback address",
		"http://localhost.example:8080":    "not a loopback address",
		"http://2130706433:8080":           "not a loopback address",
		"http://0.0.0.0:8080":              "not a loopback address",
		"http://:8080":                     "not a loopback address",
		"http://127.0.0.1@evil.example:1":  "holds a user name",
		"http://u:p@127.0.0.1:8080":        "holds a user name",
		"http://127.0.0.1":                 "has no port",
		"http://127.0.0.1:0":               "has no port",
		"http://127.0.0.1:8080/x":          "has a path",
		"http://127.0.0.1:8080?x=y":        "has a path",
		"127.0.0.1:8080":                   "is no URL",
		"localhost:8080":                   "is no URL",
		"unix:///run/arm":                  "is neither http nor https",
		"":                                 "is neither http nor https",
	} {
		if _, _, err := LocalEndpoint(raw); err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), "want http://127.0.0.1:PORT") {
			t.Errorf("%q: got %v, want an error with %q", raw, err, problem)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := Options{Endpoint: publicEndpoint(t), Credential: tokenOf("t")}
	for problem, change := range map[string]func(*Options){
		"no credential":      func(o *Options) { o.Credential = nil },
		"plain HTTP":         func(o *Options) { o.Endpoint.ResourceManager = "http://arm.example" },
		"want a URL":         func(o *Options) { o.Endpoint = Endpoint{} },
		"token audience":     func(o *Options) { o.Endpoint.Audience = "" },
		"virtual network id": func(o *Options) { o.VirtualNetworkID = "/subscriptions/s/resourceGroups/g" },
	} {
		opts := good
		change(&opts)
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got %v, want an error with %q", err, problem)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

// The credential gets the configured audience.
func TestTheTokenIsForTheAudience(t *testing.T) {
	e, err := NewEndpoint("", EndpointOverrides{ResourceManager: "https://arm.example", Audience: "https://aud.example/"})
	if err != nil {
		t.Fatal(err)
	}
	var requested policy.TokenRequestOptions
	wire := &fakeARM{answer: replySequence(shown)}
	client := newClient(t, wire, func(o *Options) { o.Endpoint, o.Credential = e, spyToken{&requested} })
	if _, err := client.GetPool(t.Context(), webPool); err != nil {
		t.Fatal(err)
	}
	if len(requested.Scopes) != 1 || requested.Scopes[0] != "https://aud.example/.default" {
		t.Errorf("asked for %q", requested.Scopes)
	}
	if wire.count(http.MethodGet) != 1 {
		t.Errorf("%d requests", wire.count(""))
	}
}
