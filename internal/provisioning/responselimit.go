// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	maxBytes, maxResponseValues = 4 << 20, 200_000
	// maxTypedValues is for typed objects: two bytes of JSON can become a Pod of over a thousand.
	maxTypedValues = 10_000
	// maxDiscoveryValues, maxDiscoveryBytes and maxDiscoveryResponses bound all discovery responses of a target. A cluster
	// with a thousand CRDs needs half of that.
	maxDiscoveryValues, maxDiscoveryBytes, maxDiscoveryResponses = 100_000, 8 << 20, 1000
	// maxVersionValues is per group version.
	maxVersionValues = 10_000
	// maxErrorBytes is in bytes, because the text is kept.
	maxErrorBytes = 64 << 10
	// A response within maxFreeResponseBytes and maxFreeValues needs no turn.
	maxFreeResponseBytes, maxFreeValues = 128 << 10, 4000
)

var (
	errTooLarge = errors.New("the target's response is too long")
	errTimeout  = errors.New("the target is too slow with a large response")
)

type responseSize struct{ bytes, values int }

// targetLimits are the limits of one target during an attempt. Safe for concurrent use.
type targetLimits struct {
	// Base is the path prefix of the server.
	Base string
	// AcquireTurn waits to read a large response, and returns when the turn expires and a function that
	// ends it.
	AcquireTurn func() (until time.Time, end func(), err error)

	discovery discoveryUsage
}

// responseLimit is the limit of one response.
type responseLimit struct {
	responseSize

	addRead     func(responseSize) bool // nil unless it counts as discovery
	acquireTurn func() (until time.Time, end func(), err error)
}

// LimitFor returns the limit for a path. Discovery responses share one limit.
func (t *targetLimits) LimitFor(path string) (responseLimit, error) {
	bound, err := t.pathLimit(path)
	bound.acquireTurn = t.AcquireTurn
	return bound, err
}

func (t *targetLimits) pathLimit(path string) (responseLimit, error) {
	part := strings.Split(strings.Trim(strings.TrimPrefix(path, t.Base), "/"), "/")
	switch {
	case (part[0] == "api" || part[0] == "apis") && len(part) <= 3:
		remaining, err := t.discovery.remaining(path)
		if part[0] == "api" && len(part) == 2 || len(part) == 3 {
			remaining.values = min(remaining.values, maxVersionValues)
		}
		return responseLimit{responseSize: remaining, addRead: func(old responseSize) bool { return t.discovery.addResponse(path, old) }}, err
	case len(part) > 4 && len(part) < 7 && part[0] == "api" && (part[4] == "pods" || part[4] == "secrets"),
		len(part) > 5 && part[1] == "batch" && part[5] == "jobs":
		return responseLimit{responseSize: responseSize{maxBytes, maxTypedValues}}, nil
	}
	return responseLimit{responseSize: responseSize{maxBytes, maxResponseValues}}, nil
}

// LimitBody limits the body of a response; end is called when it is closed.
func (r responseLimit) LimitBody(res *http.Response, end func()) error {
	if err := checkFormat(res); err != nil {
		return errors.Join(err, res.Body.Close())
	}
	if res.StatusCode >= http.StatusBadRequest {
		r.bytes = min(r.bytes, maxErrorBytes)
	}
	res.Body = &limitedBody{ReadCloser: res.Body, limit: r, end: end}
	return nil
}

type discoveryUsage struct {
	mu    sync.Mutex
	sizes map[string]responseSize // by path; the last response counts
}

func (d *discoveryUsage) remaining(path string) (responseSize, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.sizes[path]; !ok && len(d.sizes) >= maxDiscoveryResponses {
		return responseSize{}, errTooLarge
	}
	l := responseSize{maxDiscoveryBytes, maxDiscoveryValues}
	for at, old := range d.sizes {
		if at != path {
			l.bytes, l.values = l.bytes-old.bytes, l.values-old.values
		}
	}
	if d.sizes == nil {
		d.sizes = map[string]responseSize{}
	}
	d.sizes[path] = responseSize{} // counts as a part
	return responseSize{min(l.bytes, maxBytes), l.values}, nil
}

// addResponse reports whether all responses fit: others may have been read concurrently.
func (d *discoveryUsage) addResponse(path string, old responseSize) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sizes[path] = old
	var sum responseSize
	for _, h := range d.sizes {
		sum.bytes, sum.values = sum.bytes+h.bytes, sum.values+h.values
	}
	return sum.bytes <= maxDiscoveryBytes && sum.values <= maxDiscoveryValues
}

// checkFormat rejects formats other than JSON, which client-go would decode.
func checkFormat(res *http.Response) error {
	form, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	for _, other := range []string{"protobuf", "yaml", "cbor"} {
		if strings.Contains(form, other) {
			return fmt.Errorf("the target responds in %s, not in JSON", form)
		}
	}
	return nil
}

type limitedBody struct {
	io.ReadCloser

	limit    responseLimit
	readSize responseSize
	inString bool // inside a string
	inEscape bool // after a backslash in a string
	end      func()
	// endTurn is nil without a turn.
	endTurn func()
	until   time.Time
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.readSize.bytes >= b.limit.bytes {
		return 0, errTooLarge
	}
	if b.limit.acquireTurn != nil && b.endTurn == nil && (b.readSize.bytes > maxFreeResponseBytes || b.readSize.values > maxFreeValues) {
		var err error
		if b.until, b.endTurn, err = b.limit.acquireTurn(); err != nil {
			return 0, err
		}
	}
	if b.endTurn != nil && time.Now().After(b.until) {
		return 0, errTimeout
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.limit.bytes-b.readSize.bytes)])
	b.countValues(p[:n])
	if b.readSize.values > b.limit.values || b.limit.addRead != nil && !b.limit.addRead(b.readSize) {
		return 0, errTooLarge
	}
	return n, err
}

func (b *limitedBody) countValues(text []byte) {
	b.readSize.bytes += len(text)
	for _, c := range text {
		switch {
		case b.inEscape:
			b.inEscape = false
		case c == '"':
			b.inString = !b.inString
		case b.inString:
			b.inEscape = c == '\\'
		case c == ',', c == '[', c == '{':
			b.readSize.values++
		}
	}
}

func (b *limitedBody) Close() error {
	defer b.end()
	if b.endTurn != nil {
		defer b.endTurn()
	}
	return b.ReadCloser.Close()
}
