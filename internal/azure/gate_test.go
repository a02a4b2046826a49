// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// attempt makes a call that would succeed and reports whether a gate let it pass.
type attempt struct {
	name  string
	write bool
	pool  lb.PoolID
}

// gateCase is a 429 to a first call and the requests that then meet a closed gate.
type gateCase struct {
	name   string
	write  bool
	body   string
	closed string
}

// The code in the body of a 429 decides which gate closes. A Retry-After also blocks the resource.
func TestGatesClosedByA429(t *testing.T) {
	quota := func(code string) string { return errorBody(code, "Too many.") }
	tests := []gateCase{
		{"reads used up", false, subBody, "read same, read other case, read neighbour"},
		{"writes used up", true, subBody, "write same, write other case, write neighbour"},
		{"too many of something", true, quota("TooManyRequests"), ""},
		{"a provider's limit", false, quota("ResourceRequestsThrottled"), "read same, read other case, read neighbour"},
		{"a lock, met by a write", true, lockBody, "read same, write same, read other case, write other case"},
		{"a lock, met by a read", false, lockBody, "read same, write same, read other case, write other case"},
		{"a dependency not there yet", true, errorBody("RetryableError", "A retryable error occurred.", "ReferencedResourceNotProvisioned", "x"), ""},
		{"no body", true, "", ""},
		{"a page of a proxy", false, "<html>slow down</html>", ""},
	}
	for _, tt := range tests {
		for _, named := range []bool{true, false} {
			name := tt.name
			if !named {
				name += ", no time named"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { tt.run(t, named) })
			})
		}
	}
}

// run provokes the 429, then tries every request just before and after the gate opens.
func (c gateCase) run(t *testing.T, named bool) {
	t.Helper()
	const seconds = 17
	same, neighbour, elsewhere := webPool, poolID("s1", "other", "p"), poolID("s2", "kubernetes", "shop-web")
	sameButCase := poolID("S1", "KUBERNETES", "Other-Pool")
	probes := []attempt{
		{"read same", false, same}, {"write same", true, same},
		{"read other case", false, sameButCase}, {"write other case", true, sameButCase},
		{"read neighbour", false, neighbour}, {"write neighbour", true, neighbour},
		{"read elsewhere", false, elsewhere}, {"write elsewhere", true, elsewhere},
	}
	pool := readPool(t)
	first := reply{status: 429, body: c.body}
	wait := closedWithoutRetryAfter
	if named {
		first.header, wait = map[string]string{"Retry-After": "17"}, seconds*time.Second
	}
	wire := &fakeARM{answer: replySequence(first, shown)}
	client := newClient(t, wire)
	do := func(p attempt) error {
		if !p.write {
			_, err := client.GetPool(t.Context(), p.pool)
			return err
		}
		next := pool
		next.ID = p.pool
		_, err := client.PutPool(t.Context(), next)
		return err
	}
	err := do(attempt{write: c.write, pool: same})
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse.Header.Get("Retry-After") != first.header["Retry-After"] {
		t.Fatalf("the 429 itself has to surface with its headers, got %v", err)
	}
	until := time.Now().Add(wait)
	time.Sleep(wait - 1)
	var closed []string
	for _, p := range probes {
		before := wire.count("")
		if err := do(p); err != nil {
			closed = append(closed, p.name)
			code := armerror.CodeGateClosed
			if !slices.Contains(strings.Split(c.closed, ", "), p.name) {
				code = armerror.CodeRetryAfter
			}
			checkClosed(t, err, code, until)
			if wire.count("") != before {
				t.Errorf("%s: a request left through a closed gate", p.name)
			}
		}
	}
	var want []string
	for _, p := range probes {
		if rests := named && p.pool == same; rests || slices.Contains(strings.Split(c.closed, ", "), p.name) {
			want = append(want, p.name)
		}
	}
	if !slices.Equal(closed, want) {
		t.Errorf("closed for %q, want %q", closed, want)
	}
	wantOpenAt := time.Time{}
	if c.closed != "" {
		wantOpenAt = until
	}
	if got := openAt(client, same.LoadBalancer); !got.Equal(wantOpenAt) {
		t.Errorf("open at %v, want %v", got, wantOpenAt)
	}
	if got := openAt(client, elsewhere.LoadBalancer); !got.IsZero() {
		t.Errorf("another subscription opens at %v", got)
	}
	time.Sleep(time.Nanosecond)
	for _, p := range probes {
		if err := do(p); err != nil {
			t.Errorf("%s after the time: %v", p.name, err)
		}
	}
	if got := openAt(client, same.LoadBalancer); !got.IsZero() {
		t.Errorf("open at %v after the time", got)
	}
}

// openAt returns when a worker of the load balancer may start; zero for now.
func openAt(c *Client, id lb.LoadBalancerID) time.Time {
	until, _ := c.Enter(id)
	return until
}

func checkClosed(t *testing.T, err error, code string, until time.Time) {
	t.Helper()
	f := wantFault(t, err, armerror.Retriable, code)
	if !f.RetryAt.Equal(until) {
		t.Errorf("retry at %v, want %v", f.RetryAt, until)
	}
	if !errors.Is(err, retryrepectthrottled.ErrTooManyRequest) {
		t.Errorf("%v does not wrap ErrTooManyRequest", err)
	}
	if throttle, ok := errors.AsType[*retryrepectthrottled.ThrottleError](err); !ok || !throttle.RetryAfter.Equal(until) {
		t.Errorf("%v does not carry the time", err)
	}
	if !errors.As(err, new(interface{ NonRetriable() })) {
		t.Errorf("%v does not tell the SDK to stop", err)
	}
	if errors.As(err, new(*azcore.ResponseError)) {
		t.Errorf("%v claims an answer", err)
	}
	if !strings.Contains(err.Error(), until.UTC().Format(time.RFC3339)) {
		t.Errorf("%q does not say when", err)
	}
}

func TestAGateNeverOpensEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Both requests are in flight when the first response closes the gate; the second has an
		// earlier time.
		gate := make(chan struct{})
		wire := &fakeARM{answer: func(n int, _ *http.Request) reply {
			if n == 2 {
				<-gate
				return slower(reply{status: 429, body: subBody}, "5")
			}
			time.Sleep(time.Second)
			return slower(reply{status: 429, body: subBody}, "60")
		}}
		client := newClient(t, wire)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = client.GetPool(t.Context(), webPool) })
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := time.Now().Add(59 * time.Second)
		close(gate)
		wg.Wait()
		if got := openAt(client, webPool.LoadBalancer); !got.Equal(want) {
			t.Errorf("open at %v, want %v", got, want)
		}
	})
}

// An accepted write is polled despite closed gates, and a 429 to a poll closes gates for others.
func TestPollsPassClosedGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		wire := &fakeARM{answer: replySequence(accepted, slower(reply{status: 429, body: subBody}, "3"), slower(reply{status: 429, body: lockBody}, "600"), working, done, shown)}
		client := newClient(t, wire)
		finished := make(chan error)
		go func() { _, err := client.PutPool(t.Context(), pool); finished <- err }()
		time.Sleep(2500 * time.Millisecond)
		if _, err := client.GetPool(t.Context(), poolID("s1", "other", "p")); !errors.Is(err, retryrepectthrottled.ErrTooManyRequest) {
			t.Errorf("reads of the subscription are used up, and another lane's read got %v", err)
		}
		if err := <-finished; err != nil {
			t.Errorf("an accepted write failed: %v", err)
		}
	})
}

// A gate closed by another worker also delays SDK retries.
func TestAGateHoldsRetriesOfTheSDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: replySequence(reply{status: 503, header: map[string]string{"Retry-After": "30"}}, slower(reply{status: 429, body: subBody}, "60"), shown)}
		client := newClient(t, wire)
		finished := make(chan error)
		go func() { _, err := client.GetPool(t.Context(), webPool); finished <- err }()
		time.Sleep(10 * time.Second)
		_, _ = client.GetPool(t.Context(), poolID("s1", "other", "p"))
		until := time.Now().Add(time.Minute)
		checkClosed(t, <-finished, armerror.CodeGateClosed, until)
		if n := wire.count(""); n != 2 {
			t.Errorf("%d requests, want the 503 and the 429 alone", n)
		}
	})
}

func TestGatesAreSafeForConcurrentUse(t *testing.T) {
	wire := &fakeARM{answer: func(n int, _ *http.Request) reply {
		if n%3 == 0 {
			return slower(reply{status: 429, body: lockBody}, "0")
		}
		return shown
	}}
	client := newClient(t, wire)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			id := poolID("s1", "lb"+string(rune('a'+i)), "p")
			for range 50 {
				_, _ = client.GetPool(t.Context(), id)
				_ = openAt(client, id.LoadBalancer)
			}
		})
	}
	wg.Wait()
	if n := wire.count(""); n != 400 {
		t.Errorf("%d requests, want 400: a gate that closes for no time lets all pass", n)
	}
}
