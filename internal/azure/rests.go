// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"

	"weir.dev/weir/internal/backoff"
)

// mostRests limits the remembered resources. Above it, the entry that expires first is dropped.
const mostRests = 4096

type rest struct {
	until time.Time
	after string
}

// rests remembers the Retry-After of error responses per resource and rejects earlier requests. The
// policy runs inside the SDK's retries, so it delays them too.
type rests struct {
	mu sync.Mutex // guards the map; not held during requests
	of map[string]rest
}

func newRests() *rests { return &rests{of: map[string]rest{}} }

// restKey is shared by reads, writes and all pages of a list; a polled operation has its own.
func restKey(r *http.Request) string { return strings.ToLower(r.URL.EscapedPath()) }

// Do implements policy.Policy.
func (r *rests) Do(req *policy.Request) (*http.Response, error) {
	key := restKey(req.Raw())
	if found, ok := r.at(key, time.Now()); ok {
		return nil, &resting{rest: found, what: callOf(req.Raw().Context()).subject()}
	}
	resp, err := req.Next()
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		now := time.Now()
		if until, named := backoff.RetryAfter(resp.Header, now); named && until.After(now) {
			r.keep(key, rest{until: until, after: answerName(resp)}, now)
		}
	}
	return resp, err
}

func (r *rests) at(key string, now time.Time) (rest, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.of[key]
	if ok && !found.until.After(now) {
		delete(r.of, key)
		return rest{}, false
	}
	return found, ok
}

// keep never shortens an entry.
func (r *rests) keep(key string, next rest, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !next.until.After(r.of[key].until) {
		return
	}
	r.of[key] = next
	if len(r.of) > mostRests {
		r.trim(now)
	}
}

// trim deletes expired entries, or else the one that expires first. It needs r.mu.
func (r *rests) trim(now time.Time) {
	first := ""
	for key, found := range r.of {
		if !found.until.After(now) {
			delete(r.of, key)
		} else if first == "" || found.until.Before(r.of[first].until) {
			first = key
		}
	}
	if len(r.of) > mostRests {
		delete(r.of, first)
	}
}

func answerName(resp *http.Response) string {
	name := http.StatusText(resp.StatusCode)
	if codes := codesOf(resp); len(codes) > 0 {
		name = codes[len(codes)-1]
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", name))
}

// resting means not sent because of an earlier Retry-After. Like gateClosed, it wraps
// retryrepectthrottled.ErrTooManyRequest.
type resting struct {
	rest
	what string
}

// Error implements error.
func (e *resting) Error() string {
	return fmt.Sprintf("not sent: %s asked for no call before %s, with %s", e.what, e.until.UTC().Format(time.RFC3339), e.after)
}

// Unwrap leads to retryrepectthrottled.ErrTooManyRequest.
func (e *resting) Unwrap() error {
	return &retryrepectthrottled.ThrottleError{RetryAfter: e.until}
}

// NonRetriable stops the SDK's retries.
func (*resting) NonRetriable() {}

func (c *call) subject() string {
	if c == nil {
		return "Azure Resource Manager"
	}
	if c.op == opPoll {
		return "the operation on " + c.String()
	}
	return c.String()
}
