// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"go.uber.org/goleak"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	webPool   = poolID("s1", "kubernetes", "shop-web")
	vnet      = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v"
	operation = "https://management.azure.com/subscriptions/s1/providers/Microsoft.Network/locations/eastus/operations/7?api-version=2025-05-01&t=signed"
)

func poolID(subscription, balancer, pool string) lb.PoolID {
	return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg", Name: balancer}, Name: pool}
}

// pathPlaceholder is a placeholder for the path of the request.
const pathPlaceholder = "{asked}"

// reply is one response, or none.
type reply struct {
	status int
	header map[string]string
	body   string
	err    error
	// torn cuts the body off with this error.
	torn error
}

// sent is one request on the wire.
type sent struct {
	at     time.Time
	method string
	path   string
	header http.Header
	body   string
	op     string // the client's operation
	host   string
}

// fakeARM answers requests in memory; answer gets the number of the request, starting at 1.
type fakeARM struct {
	mu     sync.Mutex
	calls  []sent
	answer func(n int, r *http.Request) reply
}

func (f *fakeARM) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	f.mu.Lock()
	op := ""
	if this := callOf(req.Context()); this != nil {
		op = this.op
	}
	f.calls = append(f.calls, sent{time.Now(), req.Method, req.URL.Path, req.Header.Clone(), string(body), op, req.URL.Host})
	n := len(f.calls)
	f.mu.Unlock()
	r := f.answer(n, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range r.header {
		header.Set(name, value)
	}
	text := strings.ReplaceAll(r.body, pathPlaceholder, req.URL.Path)
	var content io.Reader = strings.NewReader(text)
	if r.torn != nil {
		content = io.MultiReader(strings.NewReader(text[:len(text)/2]), iotest.ErrReader(r.torn))
	}
	return &http.Response{
		StatusCode: r.status, Status: fmt.Sprintf("%d %s", r.status, http.StatusText(r.status)),
		Header: header, Body: io.NopCloser(content), Request: req,
	}, nil
}

func (f *fakeARM) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, call := range f.calls {
		if method == "" || call.method == method {
			n++
		}
	}
	return n
}

// replySequence answers with these responses in order, then repeats the last.
func replySequence(replies ...reply) func(int, *http.Request) reply {
	return func(n int, _ *http.Request) reply { return replies[min(n, len(replies))-1] }
}

// testToken is the token of all tests: no text may contain it.
const testToken = "canary-token-8b1f"

type tokenOf string

func (t tokenOf) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func publicEndpoint(t *testing.T) Endpoint {
	t.Helper()
	e, err := NewEndpoint("", EndpointOverrides{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newClient(t *testing.T, c *fakeARM, change ...func(*Options)) *Client {
	t.Helper()
	opts := Options{
		Endpoint: publicEndpoint(t), Credential: tokenOf(testToken), Transport: c, UserAgent: "weir/test",
		Retry: Retry{Delay: time.Minute}, VirtualNetworkID: vnet,
	}
	for _, f := range change {
		f(&opts)
	}
	client, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// poolBody is a pool with one address per IP, as Azure shows it.
func poolBody(state string, ips ...string) string {
	var entries []string
	for _, ip := range ips {
		entries = append(entries, fmt.Sprintf(`{"name":"n-%s","properties":{"ipAddress":"%s","adminState":"None"}}`, ip, ip))
	}
	return fmt.Sprintf(`{"id":"%s","etag":"W/\"e1\"","properties":{"provisioningState":"%s","virtualNetwork":{"id":"%s"},"loadBalancerBackendAddresses":[%s]}}`,
		pathPlaceholder, state, vnet, strings.Join(entries, ","))
}

func errorBody(code, message string, details ...string) string {
	list := []map[string]string{}
	for i := 0; i+1 < len(details); i += 2 {
		list = append(list, map[string]string{"code": details[i], "message": details[i+1]})
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{"code": code, "message": message, "details": list}})
	if err != nil {
		panic(err)
	}
	return string(body)
}

var (
	shown    = reply{status: 200, body: poolBody("Succeeded", "10.0.0.4")}
	accepted = reply{status: 201, body: poolBody("Updating", "10.0.0.4"), header: map[string]string{"Azure-AsyncOperation": operation}}
	working  = reply{status: 200, body: `{"status":"InProgress"}`}
	done     = reply{status: 200, body: `{"status":"Succeeded"}`}
	lockBody = errorBody("RetryableError", "A retryable error occurred.", "RetryableErrorDueToAnotherOperation", "Operation PutLoadBalancerOperation is updating resource x. The call can be retried in 11 seconds.")
	subBody  = errorBody("SubscriptionRequestsThrottled", "Number of 'write' requests for subscription actor 'a' exceeded.")
)

// readPool returns the pool as read from a fake.
func readPool(t *testing.T) lb.Pool {
	t.Helper()
	pool, err := newClient(t, &fakeARM{answer: replySequence(shown)}).GetPool(context.WithoutCancel(t.Context()), webPool)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func address(name, ip string) lb.Address {
	return lb.Address{Name: name, IP: netip.MustParseAddr(ip)}
}

// wantFault fails unless err is this fault.
func wantFault(t *testing.T, err error, class armerror.Class, code string) *armerror.Fault {
	t.Helper()
	f, ok := errors.AsType[*armerror.Fault](err)
	if !ok {
		t.Fatalf("error %v carries no fault", err)
	}
	if f.Class != class || f.Code != code {
		t.Errorf("got %s %q, want %s %q (%v)", f.Class, f.Code, class, code, err)
	}
	if text := f.Error(); strings.ContainsAny(text, "\r\n\t") || strings.Contains(text, testToken) || len([]rune(text)) > maxLineLength {
		t.Errorf("message is not fit for an event: %q", text)
	}
	return f
}
