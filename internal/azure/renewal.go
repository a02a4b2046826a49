// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
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
}

func newRenewableCredential(c azcore.TokenCredential) *renewableCredential {
	return &renewableCredential{TokenCredential: c, turn: make(chan struct{}, 1)}
}

// GetToken implements azcore.TokenCredential.
func (r *renewableCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if o.TenantID == "" && o.Claims == "" {
		r.last.Store(&o)
	}
	return r.TokenCredential.GetToken(ctx, o)
}

// renew reports whether the next token differs from a rejected one. It requests one unless that was done within
// renewalInterval.
func (r *renewableCredential) renew(ctx context.Context, rejected string) bool {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return false
	}
	if time.Since(r.renewedAt) < renewalInterval {
		return rejected != r.renewed
	}
	last := r.last.Load()
	if last == nil {
		return false
	}
	o := *last
	o.Claims = "{}" // bypasses the cache, and requests nothing
	token, err := r.TokenCredential.GetToken(ctx, o)
	if err != nil {
		token.Token = rejected
	}
	r.renewed, r.renewedAt = token.Token, time.Now()
	return token.Token != rejected
}

// renewalPolicy renews a rejected token, so that the SDK retries the call. The SDK itself does so only for a challenge
// with claims.
type renewalPolicy struct{ credential *renewableCredential }

// Do implements policy.Policy.
func (p renewalPolicy) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	c := callOf(req.Raw().Context())
	if c == nil || resp == nil {
		return resp, err
	}
	isRejected := resp.StatusCode == http.StatusUnauthorized && !strings.Contains(resp.Header.Get("WWW-Authenticate"), "insufficient_claims")
	token := strings.TrimPrefix(req.Raw().Header.Get("Authorization"), "Bearer ")
	c.hasNewToken.Store(isRejected && p.credential.renew(req.Raw().Context(), token))
	return resp, err
}
