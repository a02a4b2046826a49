// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

const pollInterval = 2 * time.Second

// Transport sends one request. *http.Client implements it.
type Transport interface {
	Do(*http.Request) (*http.Response, error)
}

// Options configure a Client. Endpoint and Credential are required.
type Options struct {
	Endpoint Endpoint
	// Credential authorizes requests; see [Credentials] and [LocalEndpoint].
	Credential azcore.TokenCredential
	// NetworkTenant is authorized by tokens of its tenant; it is for a Credential that may request them.
	NetworkTenant NetworkTenant
	// Transport sends the requests; the default is an HTTP client that does not follow redirects.
	Transport Transport
	// TracerProvider receives one span per request on the wire; may be nil.
	TracerProvider trace.TracerProvider
	// UserAgent is the first part of the User-Agent header, e.g. "weir/1.2.0"; Azure keeps 24
	// characters.
	UserAgent string
	// WithoutIfMatch sends writes without If-Match: the last writer wins. That the real service
	// honors If-Match on a pool is an assumption.
	WithoutIfMatch bool
	// VirtualNetworkID is the ARM ID of the virtual network for IP-based pools that name none; may
	// be empty.
	VirtualNetworkID string
	// OnRequest is called for every request on the wire, concurrently; may be nil.
	OnRequest func(requestlog.Call)
	// OnGateClosed is called concurrently when a 429 closes a gate or extends it; may be nil.
	OnGateClosed func(reason string, until time.Time)
	// Writes records every write and the remaining quota; may be nil.
	Writes *ratelimit.Budgets
	// Fence is checked before each try of a write, and by the default transport before each byte;
	// nil allows all writes.
	Fence *leader.Fence
	// Retry overrides the number and delay of the SDK's retries, not which requests are retried.
	Retry Retry
}

// Retry overrides the SDK's retries. The zero value is the SDK's default: 3 retries, 0.8 s doubling
// with jitter, at most 60 s.
type Retry struct {
	// MaxRetries is the number of tries after the first; negative means none.
	MaxRetries int32
	// Delay is the fixed backoff, without jitter, and the longest Retry-After that is retried.
	Delay time.Duration
}

// Client reads and writes Azure resources of any subscription. Errors carry a *armerror.Fault: stale
// for a missing resource or group; with the code OutcomeUnknown, a write may have succeeded.
type Client struct {
	documentClient
	opts          Options
	clientOptions *arm.ClientOptions
	gates         *gates
	retryAfters   *retryAfterPolicy
	attached      interfaceCache
	slowWrites    slowWrites
}

// New returns a Client. It sends no request.
func New(opts Options) (*Client, error) {
	if opts.Credential == nil {
		return nil, errors.New("azure: no credential: use Credentials.Token, or Emulator for a loopback endpoint")
	}
	if err := opts.Endpoint.Validate(); err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	if opts.VirtualNetworkID != "" {
		if id, err := arm.ParseResourceID(opts.VirtualNetworkID); err != nil || id.ResourceType.String() != "Microsoft.Network/virtualNetworks" {
			return nil, fmt.Errorf("azure: virtual network id %q: want /subscriptions/…/resourceGroups/…/providers/Microsoft.Network/virtualNetworks/…", opts.VirtualNetworkID)
		}
	}
	c := &Client{documentClient: documentClient{withoutIfMatch: opts.WithoutIfMatch}, opts: opts, gates: newGates(), retryAfters: newRetryAfterPolicy()}
	c.gates.onClose = opts.OnGateClosed
	c.clientOptions = &arm.ClientOptions{
		DisableRPRegistration: true, // Weir needs no registration
		ClientOptions: policy.ClientOptions{
			Cloud:                           opts.Endpoint.ToConfiguration(),
			InsecureAllowCredentialWithHTTP: opts.Endpoint.IsPlainHTTP(),
			Retry:                           retryOptions(opts.Retry),
			Telemetry:                       policy.TelemetryOptions{ApplicationID: opts.UserAgent},
			TracingProvider:                 newTracingProvider(opts.TracerProvider, targetAttributes),
			PerCallPolicies:                 []policy.Policy{endpointPolicy{opts.Endpoint}, c.gates},
			PerRetryPolicies:                []policy.Policy{retryGates{c.gates}, c.retryAfters, leaderPolicy{opts.Fence}, observePolicy{onRequest: opts.OnRequest, writes: opts.Writes}, responseLimitPolicy{}},
		},
	}
	c.clientOptions.Transport = limitedTransport{defaultTransport(opts.Transport, opts.Fence)}
	var err error
	if c.armClients, err = newARMClients(opts.Credential, opts.NetworkTenant, *c.clientOptions); err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	return c, nil
}

// defaultTransport returns a default transport that follows no redirect, which would carry the token, even
// over plain HTTP.
func defaultTransport(transport Transport, fence *leader.Fence) Transport {
	if transport != nil {
		return transport
	}
	return &http.Client{
		Transport:     newDefaultFencedTransport(fence),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
