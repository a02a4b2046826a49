// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"weir.dev/weir/internal/armerror"
)

// The table of the cost of one call for any response: the number of requests shows the retry layer.
func TestCallsOnTheWire(t *testing.T) {
	for _, section := range wireTable() {
		for _, row := range section.rows {
			for _, c := range requestKinds {
				if row.resultIn(c) == notDriven {
					continue
				}
				t.Run(section.title+"/"+row.name+"/"+string(c), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { row.checkCall(t, c) })
				})
			}
		}
	}
}

// checkCall makes a single call.
func (r wireRow) checkCall(t *testing.T, c requestKind) {
	t.Helper()
	wire, start := newStaged(r, c), time.Now()
	err := wire.makeCall(t)
	end, retryAt := r.end(c, start)
	if !time.Now().Equal(end) {
		t.Errorf("took %v, want %v", time.Since(start), end.Sub(start))
	}
	f := r.resultIn(c)
	if n := wire.countRequests(0); n != f.requests {
		t.Errorf("%d requests, want %d", n, f.requests)
	}
	if f.class == "" || r.unseen {
		if err != nil {
			t.Errorf("%v, want success", err)
		}
		return
	}
	found := wantFault(t, err, f.class, r.resultCode(c))
	if !found.RetryAt.Equal(retryAt) {
		t.Errorf("retry at %v, want %v", found.RetryAt, retryAt)
	}
	if answer, ok := errors.AsType[*azcore.ResponseError](err); r.answer.status >= 300 && (!ok || answer.RawResponse == nil) {
		t.Error("the SDK's error and its response are not in the chain")
	}
}

// For changing responses, the last try of the SDK decides, and the possible outcome of earlier
// ones.
func TestTheSDKsRetriesMeetSomethingElse(t *testing.T) {
	lost, busy, late := reply{err: errReset}, reply{status: 503}, errorReply(412, "PreconditionFailed")
	tests := []struct {
		name    string
		put     bool
		answers []reply
		calls   int
		class   armerror.Class // empty for success
		code    string
	}{
		{"a read succeeds", false, []reply{lost, busy, shown}, 3, "", ""},
		{"a read is throttled", false, []reply{busy, errorReply(429, "TooManyRequests")}, 2, armerror.Retriable, "TooManyRequests"},
		{"a read is refused", false, []reply{lost, {status: 403}}, 2, armerror.Terminal, "Forbidden"},
		{"a write succeeds", true, []reply{busy, shown}, 2, "", ""},
		{"a write meets its own etag", true, []reply{busy, late}, 2, armerror.Retriable, "PreconditionFailed"},
		{"a write is lost", true, []reply{busy, lost}, 2, armerror.Retriable, armerror.CodeOutcomeUnknown},
		{"a write is throttled", true, []reply{busy, busy, {status: 429}}, 3, armerror.Retriable, "Too Many Requests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool, wire := readPool(t), &fakeARM{answer: replySequence(tt.answers...)}
				var err error
				if client := newClient(t, wire); tt.put {
					_, err = client.PutPool(t.Context(), pool)
				} else {
					_, err = client.GetPool(t.Context(), webPool)
				}
				if n := wire.count(""); n != tt.calls {
					t.Errorf("%d requests, want %d", n, tt.calls)
				}
				if tt.class != "" {
					wantFault(t, err, tt.class, tt.code)
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Without a token nothing is sent, and only the credential retries.
func TestWithoutAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &fakeARM{answer: replySequence(shown)}
		client := newClient(t, wire, func(o *Options) { o.Credential = noToken{} })
		_, err := client.GetPool(t.Context(), webPool)
		wantFault(t, err, armerror.Terminal, armerror.CodeUnclassified)
		_, err = client.PutPool(t.Context(), readPool(t))
		wantFault(t, err, armerror.Terminal, armerror.CodeUnclassified)
		if n := wire.count(""); n != 0 || !time.Now().Equal(epoch) {
			t.Errorf("%d requests, and it is %v", n, time.Now())
		}
	})
}

type noToken struct{}

func (noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("the token endpoint does not answer")
}

// A finished context must be in the error chain.
func TestContextDone(t *testing.T) {
	t.Run("cancelled before a read", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newClient(t, &fakeARM{answer: replySequence(shown)}).GetPool(ctx, webPool)
		wantFault(t, err, armerror.Terminal, armerror.CodeUnclassified)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not say that the context was cancelled", err)
		}
	})
	t.Run("cancelled while a write is on the wire", func(t *testing.T) {
		pool := readPool(t)
		ctx, cancel := context.WithCancel(t.Context())
		wire := &fakeARM{answer: func(int, *http.Request) reply { cancel(); return accepted }}
		_, err := newClient(t, wire).PutPool(ctx, pool)
		wantFault(t, err, armerror.Retriable, armerror.CodeOutcomeUnknown)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not say that the context was cancelled", err)
		}
	})
	t.Run("deadline while waiting for Azure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pool := readPool(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := newClient(t, &fakeARM{answer: replySequence(accepted, working)}).PutPool(ctx, pool)
			wantFault(t, err, armerror.Retriable, armerror.CodeOutcomeUnknown)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("deadline while a read is being retried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			wire := &fakeARM{answer: replySequence(reply{status: 503, header: map[string]string{"Retry-After": "20"}})}
			_, err := newClient(t, wire).GetPool(ctx, webPool)
			wantFault(t, err, armerror.Retriable, armerror.CodeOutcomeUnknown)
			if !errors.Is(err, context.DeadlineExceeded) || wire.count("") != 2 {
				t.Errorf("got %v after %d requests", err, wire.count(""))
			}
		})
	})
}

// Requests that Azure would reject, or that would lose data, are not sent.
func TestRefusedBeforeTheWire(t *testing.T) {
	good := readPool(t)
	evil := good
	evil.ID.Name = "x/../../y?z"
	unread := good
	unread.Origin = nil
	nic := good
	nic.NIC = true
	bare := good
	bare.Etag = ""
	tests := []struct {
		name, code string
		call       func(*Client) error
		wantText   string
	}{
		{"id in a read", codeInvalidID, func(c *Client) error { _, err := c.GetPool(t.Context(), evil.ID); return err }, `pool name "x/../../y?z"`},
		{"id in a write", codeInvalidID, func(c *Client) error { _, err := c.PutPool(t.Context(), evil); return err }, `pool name`},
		{"never read", codeNotRead, func(c *Client) error { _, err := c.PutPool(t.Context(), unread); return err }, "was not read before"},
		{"network interfaces", codeNetworkInterface, func(c *Client) error { _, err := c.PutPool(t.Context(), nic); return err }, "network interfaces"},
		{"no etag", codeNoEtag, func(c *Client) error { _, err := c.PutPool(t.Context(), bare); return err }, "etag"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wire := &fakeARM{answer: replySequence(shown)}
			f := wantFault(t, tt.call(newClient(t, wire)), armerror.Terminal, tt.code)
			if !strings.Contains(f.Error(), tt.wantText) {
				t.Errorf("message %q does not say %q", f.Error(), tt.wantText)
			}
			if n := wire.count(""); n != 0 {
				t.Errorf("%d requests left", n)
			}
		})
	}
	t.Run("no etag is no hindrance without If-Match", func(t *testing.T) {
		wire := &fakeARM{answer: replySequence(shown)}
		if _, err := newClient(t, wire, func(o *Options) { o.WithoutIfMatch = true }).PutPool(t.Context(), bare); err != nil {
			t.Error(err)
		}
	})
}
