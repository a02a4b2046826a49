// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// renewalInterval is the shortest time between two renewals of a token before its expiry.
const renewalInterval = time.Minute

// renewableCredential renews a token that Azure rejects before its expiry. Otherwise the credential returns it from its
// cache until then, up to a day later.
type renewableCredential struct {
	azcore.TokenCredential
	last atomic.Pointer[policy.TokenRequestOptions]
	// turn guards the fields below.
	turn      chan struct{}
	renewed   string
	renewedAt time.Time
	failed    error
}

func newRenewableCredential(c azcore.TokenCredential) *renewableCredential {
	return &renewableCredential{TokenCredential: c, turn: make(chan struct{}, 1)}
}

// GetToken implements azcore.TokenCredential.
func (r *renewableCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if o.TenantID == "" && o.Claims == "" {
		r.last.Store(&o)
	}
	return r.requestToken(ctx, o)
}

// tokenTimeout limits a request for a token. The retries of the credential would hide for minutes that its endpoint does not
// answer.
const tokenTimeout = 20 * time.Second

func (r *renewableCredential) requestToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	within, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	token, err := r.TokenCredential.GetToken(within, o)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &noResponseError{err: fmt.Errorf("no token within %s: the token endpoint of Weir's identity does not answer, or only with errors: %w", tokenTimeout, err)}
	}
	return token, err
}

// renew reports whether the next token differs from a rejected one. It requests one unless that was done within
// renewalInterval. An error is that of the sign-in.
func (r *renewableCredential) renew(ctx context.Context, rejected string) (isNew bool, err error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return false, nil
	}
	if time.Since(r.renewedAt) < renewalInterval {
		return rejected != r.renewed, r.failed
	}
	last := r.last.Load()
	if last == nil {
		return false, nil
	}
	o := *last
	o.Claims = "{}" // bypasses the cache, and requests nothing
	token, err := r.requestToken(ctx, o)
	if errors.Is(ctx.Err(), context.Canceled) { // nothing is known for other calls
		return false, nil
	}
	if err != nil {
		token.Token, err = rejected, &signInError{err}
	}
	r.renewed, r.renewedAt, r.failed = token.Token, time.Now(), err
	return token.Token != rejected, err
}

// signInError is the failed renewal of a token, after Azure rejected a call that had the former one.
type signInError struct{ error }

// Unwrap returns the credential's error.
func (e *signInError) Unwrap() error { return e.error }

// renewalPolicy renews a rejected token, so that the SDK retries the call. The SDK itself does so only for a challenge
// with claims. If the sign-in fails, its error names the cause, and Azure's response does not.
type renewalPolicy struct{ credential *renewableCredential }

// Do implements policy.Policy.
func (p renewalPolicy) Do(req *policy.Request) (*http.Response, error) {
	token := strings.TrimPrefix(req.Raw().Header.Get("Authorization"), "Bearer ")
	resp, err := req.Next()
	c := callOf(req.Raw().Context())
	if c == nil || resp == nil {
		return resp, err
	}
	isRejected := resp.StatusCode == http.StatusUnauthorized && !strings.Contains(resp.Header.Get("WWW-Authenticate"), "insufficient_claims")
	if !isRejected {
		c.hasNewToken.Store(false)
		return resp, err
	}
	isNew, failed := p.credential.renew(req.Raw().Context(), token)
	c.hasNewToken.Store(isNew)
	if failed != nil && !isNew {
		_ = resp.Body.Close()
		return nil, failed
	}
	return resp, err
}
