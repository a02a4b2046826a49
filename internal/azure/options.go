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

	"weir.dev/weir/internal/azure/attached"
	"weir.dev/weir/internal/azure/cloud"
	"weir.dev/weir/internal/azure/fence"
	"weir.dev/weir/internal/azure/look"
	"weir.dev/weir/internal/azure/spans"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/pace"
)

// pollInterval is how often an operation is polled when Azure names no Retry-After.
const pollInterval = 2 * time.Second

// Transport sends one request. *http.Client is one.
type Transport interface {
	Do(*http.Request) (*http.Response, error)
}

// Options configure a Client. Endpoint and Credential are required.
type Options struct {
	// Endpoint is where Azure Resource Manager answers.
	Endpoint cloud.Endpoint
	// Credential authorizes requests; see Credentials and Emulator.
	Credential azcore.TokenCredential
	// Transport sends the requests; nil is an HTTP client that follows no redirect.
	Transport Transport
	// TracerProvider receives a span for each request on the wire; nil traces nothing.
	TracerProvider trace.TracerProvider
	// UserAgent comes first in the User-Agent header, e.g. "weir/1.2.0". Azure
	// takes 24 characters of it.
	UserAgent string
	// WithoutIfMatch sends writes without If-Match, so that the last writer wins.
	// How the real service treats If-Match on a pool is assumed, hence the choice.
	WithoutIfMatch bool
	// VirtualNetworkID is the ARM id of the virtual network that an IP-based pool
	// gets if neither it nor its addresses name one; empty if unknown.
	VirtualNetworkID string
	// Observe is told of every request on the wire. It is called from several goroutines at
	// once. Nil observes nothing.
	Observe func(calls.Call)
	// Closed is told of every gate that a 429 closes, or keeps closed for longer: what is
	// closed until when, and by which code, as a sentence for people. It is called from
	// several goroutines at once. Nil is told nothing.
	Closed func(why string, until time.Time)
	// Writes is told of every write that leaves, and of what Azure says is left; nil is told
	// nothing.
	Writes *pace.Budgets
	// Fence is asked before each try of a write, and by our own transport before each byte
	// of it; nil lets all of them leave.
	Fence *lead.Fence
	// Retry overrides the number and delay of the SDK's retries; which requests are
	// retried is not negotiable.
	Retry Retry
}

// Retry overrides the SDK's pace; its zero value is the SDK's own: 3 retries, 0.8 s
// doubling with jitter, at most 60 s.
type Retry struct {
	// MaxRetries counts the tries after the first; negative is none.
	MaxRetries int32
	// Pause makes every back-off last exactly this long, without jitter. It is then
	// also the longest Retry-After that is waited for.
	Pause time.Duration
}

// Client reads and writes load balancers, their backend pools and public IPs in any
// number of subscriptions.
type Client struct {
	documents
	opts  Options
	arm   *arm.ClientOptions
	gates *gates
	rests *rests
	// attached says which machines have interfaces.
	attached attached.Interfaces
	slow     look.Slow
}

// New returns a Client. It sends nothing and asks for no token.
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
	c := &Client{documents: documents{withoutIfMatch: opts.WithoutIfMatch}, opts: opts, gates: newGates(), rests: newRests()}
	c.gates.tell = opts.Closed
	c.arm = &arm.ClientOptions{
		DisableRPRegistration: true, // Weir registers nothing
		ClientOptions: policy.ClientOptions{
			Cloud:                           opts.Endpoint.Configuration(),
			InsecureAllowCredentialWithHTTP: opts.Endpoint.Cleartext(),
			Retry:                           retryOptions(opts.Retry),
			Telemetry:                       policy.TelemetryOptions{ApplicationID: opts.UserAgent},
			TracingProvider:                 spans.Provider(opts.TracerProvider, targetAttributes),
			PerCallPolicies:                 []policy.Policy{pinned{opts.Endpoint}, c.gates},
			PerRetryPolicies:                []policy.Policy{gateOfRetries{c.gates}, c.rests, fenced{opts.Fence}, wire{observe: opts.Observe, writes: opts.Writes}, bounds{}},
		},
	}
	c.arm.Transport = sparing{direct(opts.Transport, opts.Fence)}
	var err error
	if c.plain, err = arm.NewClient("weir.dev/weir/internal/azure", "v1.0.0", opts.Credential, c.arm); err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	return c, nil
}

// direct returns the transport, or one of our own that follows no redirect: Azure
// Resource Manager sends none for a pool, and the token would travel along, over
// plain HTTP too. Over ours nothing but reads leaves without the lead.
func direct(transport Transport, leads *lead.Fence) Transport {
	if transport != nil {
		return transport
	}
	return &http.Client{
		Transport:     fence.Transport(leads),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
