// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/armerror"
)

// numberedTokens issues a new token for each request.
type numberedTokens struct{ issued atomic.Int64 }

func (n *numberedTokens) Do(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.URL.Path, "openid-configuration") {
		return (&entra{}).Do(req)
	}
	body := fmt.Sprintf(`{"access_token":"token-%d","token_type":"Bearer","expires_in":3600,"expires_on":"%d","resource":"x"}`,
		n.issued.Add(1), time.Now().Add(time.Hour).Unix())
	return (&fakeARM{answer: replySequence(reply{status: 200, body: body})}).Do(req)
}

// Azure rejects a token before its expiry: the request is sent again with a new token, not with the cached one.
func TestARejectedTokenIsRenewed(t *testing.T) {
	t.Setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:41/msi/token")
	t.Setenv("IDENTITY_HEADER", "header-secret")
	for name, c := range map[string]Credentials{
		"client secret":    {TenantID: "tenant", ClientID: "client", ClientSecret: "password"},
		"managed identity": {ManagedIdentity: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens := &numberedTokens{}
				endpoint := publicEndpoint(t)
				endpoint.Private = true // the credential finds no token in its cache without metadata of the public cloud
				cred, err := c.NewTokenCredential(endpoint, tokens)
				if err != nil {
					t.Fatal(err)
				}
				accepted := "token-1"
				wire := &fakeARM{answer: func(_ int, r *http.Request) reply {
					if r.Header.Get("Authorization") != "Bearer "+accepted {
						return errorReply(http.StatusUnauthorized, "ExpiredAuthenticationToken")
					}
					return shown
				}}
				client := newClient(t, wire, func(o *Options) {
					o.Credential, o.Retry.Delay = cred, time.Second
					o.Endpoint.Audience = fmt.Sprintf("https://aud-%d", audiences.Add(1))
				})
				read := func(requests int, issued int64, rejected bool) {
					t.Helper()
					before := wire.count("")
					_, err := client.GetPool(t.Context(), webPool)
					if rejected {
						wantFault(t, err, armerror.Terminal, "ExpiredAuthenticationToken")
					} else if err != nil {
						t.Fatal(err)
					}
					if n := wire.count("") - before; n != requests || tokens.issued.Load() != issued {
						t.Errorf("%d requests and %d tokens: want %d and %d", n, tokens.issued.Load(), requests, issued)
					}
				}
				read(1, 1, false)
				accepted = "token-2"
				read(2, 2, false)
				read(1, 2, false)
				accepted = "none"
				time.Sleep(renewalInterval)
				read(2, 3, true)
				read(1, 3, true) // the token is new: no further one within the interval
				accepted = "token-4"
				time.Sleep(renewalInterval)
				read(2, 4, false)
			})
		})
	}
}

// The error of a failed sign-in replaces the rejection of the former token.
func TestFailedTokenRenewal(t *testing.T) {
	tokens := &numberedTokens{}
	expired := &fakeARM{answer: replySequence(reply{status: 401, body: `{"error":"invalid_client","error_description":"AADSTS7000222: The provided client secret keys are expired."}`})}
	signIn := transporterFunc(func(req *http.Request) (*http.Response, error) {
		if tokens.issued.Load() == 0 || strings.Contains(req.URL.Path, "openid-configuration") {
			return tokens.Do(req)
		}
		return expired.Do(req)
	})
	endpoint := publicEndpoint(t)
	endpoint.Private = true // the credential finds no token in its cache without metadata of the public cloud
	cred, err := Credentials{TenantID: "tenant", ClientID: "client", ClientSecret: "password"}.NewTokenCredential(endpoint, signIn)
	if err != nil {
		t.Fatal(err)
	}
	wire := &fakeARM{answer: replySequence(shown, errorReply(http.StatusUnauthorized, "ExpiredAuthenticationToken"))}
	client := newClient(t, wire, func(o *Options) {
		o.Credential = cred
		o.Endpoint.Audience = fmt.Sprintf("https://aud-%d", audiences.Add(1))
	})
	if _, err := client.GetPool(t.Context(), webPool); err != nil {
		t.Fatal(err)
	}
	for _, call := range []func() error{
		func() error { _, err := client.GetPool(t.Context(), webPool); return err },
		func() error { _, err := client.PutPool(t.Context(), readPool(t)); return err }, // rejected, so its outcome is known
	} {
		err := call()
		wantFault(t, err, armerror.Terminal, armerror.CodeUnclassified)
		if !strings.Contains(err.Error(), "AADSTS7000222") {
			t.Errorf("the error is %q, want the cause of the failed sign-in", err)
		}
	}
	if n := wire.count(""); n != 3 {
		t.Errorf("%d requests, want 3: an error of the sign-in is not retried", n)
	}
}

// hangingToken returns no token before the context ends, as the retries of a credential.
type hangingToken struct{}

func (hangingToken) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	<-ctx.Done()
	return azcore.AccessToken{}, ctx.Err()
}

// A token endpoint that does not answer is named within seconds, for a read and a write, and nothing is sent to Azure.
func TestSilentTokenEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: replySequence(shown)}
		client := newClient(t, wire, func(o *Options) { o.Credential = hangingToken{} })
		for name, call := range map[string]func() error{
			"read":  func() error { _, err := client.GetPool(t.Context(), webPool); return err },
			"write": func() error { _, err := client.PutPool(t.Context(), readPool(t)); return err },
		} {
			began := time.Now()
			err := call()
			if took := time.Since(began); took != tokenTimeout || err == nil || !strings.Contains(err.Error(), "no token within 20s: the token endpoint") {
				t.Errorf("%s: after %s: %v", name, took, err)
			}
			wantFault(t, err, armerror.Terminal, armerror.CodeUnreachable)
		}
		if n := wire.count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A renewal has the same limit. A call that ends earlier does not blame the endpoint.
func TestHangingTokenRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRenewableCredential(hangingToken{})
		r.last.Store(&policy.TokenRequestOptions{})
		began := time.Now()
		isNew, err := r.renew(t.Context(), "rejected")
		if took := time.Since(began); took != tokenTimeout || isNew || err == nil || !strings.Contains(err.Error(), "no token within 20s") {
			t.Errorf("after %s: %v, %v", took, isNew, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.GetToken(ctx, policy.TokenRequestOptions{}); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "no token") {
			t.Errorf("a call that ends earlier: %v", err)
		}
	})
}

type transporterFunc func(*http.Request) (*http.Response, error)

func (f transporterFunc) Do(req *http.Request) (*http.Response, error) { return f(req) }
