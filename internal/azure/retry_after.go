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

	"weir.dev/weir/internal/ratelimit"
)

// maxRetryAfterEntries limits the remembered resources. Above it, the entry that expires first is dropped.
const maxRetryAfterEntries = 4096

type retryAfterEntry struct {
	until time.Time
	after string
}

// retryAfterPolicy remembers the Retry-After of error responses per resource and rejects earlier requests. The
// policy runs inside the SDK's retries, so it delays them too.
type retryAfterPolicy struct {
	mu      sync.Mutex // guards the map; not held during requests
	entries map[string]retryAfterEntry
}

func newRetryAfterPolicy() *retryAfterPolicy {
	return &retryAfterPolicy{entries: map[string]retryAfterEntry{}}
}

// retryAfterKey is shared by reads, writes and all pages of a list; a polled operation has its own.
func retryAfterKey(r *http.Request) string { return strings.ToLower(r.URL.EscapedPath()) }

// Do implements policy.Policy.
func (r *retryAfterPolicy) Do(req *policy.Request) (*http.Response, error) {
	key := retryAfterKey(req.Raw())
	if found, ok := r.activeEntry(key, time.Now()); ok {
		return nil, &retryAfterError{retryAfterEntry: found, target: callOf(req.Raw().Context()).targetName()}
	}
	resp, err := req.Next()
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		now := time.Now()
		if until, named := ratelimit.RetryAfter(resp.Header, now); named && until.After(now) {
			r.recordEntry(key, retryAfterEntry{until: until, after: responseName(resp)}, now)
		}
	}
	return resp, err
}

func (r *retryAfterPolicy) activeEntry(key string, now time.Time) (retryAfterEntry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.entries[key]
	if ok && !found.until.After(now) {
		delete(r.entries, key)
		return retryAfterEntry{}, false
	}
	return found, ok
}

// recordEntry never shortens an entry.
func (r *retryAfterPolicy) recordEntry(key string, next retryAfterEntry, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !next.until.After(r.entries[key].until) {
		return
	}
	r.entries[key] = next
	if len(r.entries) > maxRetryAfterEntries {
		r.trimEntries(now)
	}
}

// trimEntries deletes expired entries, or else the one that expires first. It needs r.mu.
func (r *retryAfterPolicy) trimEntries(now time.Time) {
	first := ""
	for key, found := range r.entries {
		if !found.until.After(now) {
			delete(r.entries, key)
		} else if first == "" || found.until.Before(r.entries[first].until) {
			first = key
		}
	}
	if len(r.entries) > maxRetryAfterEntries {
		delete(r.entries, first)
	}
}

func responseName(resp *http.Response) string {
	name := http.StatusText(resp.StatusCode)
	if codes := parseCodes(resp); len(codes) > 0 {
		name = codes[len(codes)-1]
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", name))
}

// retryAfterError means not sent because of an earlier Retry-After. Like gateClosedError, it wraps
// retryrepectthrottled.ErrTooManyRequest.
type retryAfterError struct {
	retryAfterEntry
	target string
}

// Error implements error.
func (e *retryAfterError) Error() string {
	return fmt.Sprintf("not sent: no request for %s before %s, because of %s", e.target, e.until.UTC().Format(time.RFC3339), e.after)
}

// Unwrap leads to retryrepectthrottled.ErrTooManyRequest.
func (e *retryAfterError) Unwrap() error {
	return &retryrepectthrottled.ThrottleError{RetryAfter: e.until}
}

// NonRetriable stops the SDK's retries.
func (*retryAfterError) NonRetriable() {}

func (c *call) targetName() string {
	if c == nil {
		return "Azure Resource Manager"
	}
	if c.op == opPoll {
		return "the operation on " + c.String()
	}
	return c.String()
}
