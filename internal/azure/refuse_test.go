// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/armerror"
)

// notThePool are responses with status 200 about something else.
var notThePool = map[string]string{
	"nothing":       ``,
	"null":          `null`,
	"no properties": `{"id":"{asked}","etag":"e"}`,
	"empty":         `{}`,
	"an error":      `{"error":{"code":"InternalServerError"}}`,
	"another pool":  `{"id":"{asked}-2","etag":"e","properties":{}}`,
	"another name":  `{"name":"other","etag":"e","properties":{}}`,
}

func TestInvalidResponseIsNotAnEmptyPool(t *testing.T) {
	for name, body := range notThePool {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, &fakeARM{answer: replySequence(reply{status: 200, body: body})}).GetPool(t.Context(), webPool)
			if f := armerror.FromError(err); f == nil || f.Class == armerror.Stale {
				t.Errorf("got %v, want a failure that leaves the pool alone", err)
			}
		})
		t.Run("after a write, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := readPool(t)
				_, err := newClient(t, &fakeARM{answer: replySequence(accepted, done, reply{status: 200, body: body})}).PutPool(t.Context(), pool)
				wantFault(t, err, armerror.Retriable, armerror.CodeOutcomeUnknown)
			})
		})
	}
}

// A client that follows redirects would send the token over plain HTTP.
func TestNoRedirectIsFollowed(t *testing.T) {
	followed := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer elsewhere.Close()
	azure := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer azure.Close()

	endpoint, credential, err := LocalEndpoint(azure.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(Options{Endpoint: endpoint, Credential: credential})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetPool(t.Context(), webPool); err == nil || followed {
		t.Errorf("got %v, followed: %v; want an error and nothing sent elsewhere", err, followed)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// The SDK quotes the whole response of a token endpoint on a parse error.
func TestRedactTokenAnswers(t *testing.T) {
	for _, text := range []string{
		`raw message was: {"token_type":"Bearer","expires_in":"soon","access_token":"CANARY"}`,
		`raw message was: {\"access_token\":\"CANARY\"}`,
		`{'refresh_token': 'CANARY'}`,
		`grant_type=x&client_secret=CANARY&scope=y`,
		`client_assertion=CANARY`,
		`AccessToken: CANARY, next`,
		`{"access_token":"CANARY`,
	} {
		if got := redactText(text); strings.Contains(got, "CANARY") || !strings.Contains(got, redactionMark) {
			t.Errorf("%s\nbecomes %s", text, got)
		}
	}
}
