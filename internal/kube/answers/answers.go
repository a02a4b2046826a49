// SPDX-License-Identifier: Apache-2.0

// Package answers limits what is read from the API servers of targets, which may be hostile.
package answers

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
	mostBytes, mostValues = 4 << 20, 200_000
	// mostTyped is for typed objects: two bytes of JSON can become a Pod of over a thousand.
	mostTyped = 10_000
	// mostKnown, mostOfKnown and mostParts bound all discovery responses of a target. A cluster
	// with a thousand CRDs needs half of that.
	mostKnown, mostOfKnown, mostParts = 100_000, 8 << 20, 1000
	// maxOfVersion is per group version.
	maxOfVersion = 10_000
	// maxOfError is in bytes, because the text is kept.
	maxOfError = 64 << 10
	// A response within maxSmallBytes and maxSmallValues needs no turn.
	maxSmallBytes, maxSmallValues = 128 << 10, 4000
)

var (
	errTooMuch = errors.New("the target answers more than is read of it")
	errTooSlow = errors.New("the target takes too long for a large answer")
)

type size struct{ bytes, values int }

// Bounds are the limits of one target during an attempt. Safe for concurrent use.
type Bounds struct {
	// Base is the path prefix of the server.
	Base string
	// Turn waits to read a large response, and returns when the turn expires and a function that
	// ends it.
	Turn func() (until time.Time, end func(), err error)

	known known
}

// Bound is the limit of one response.
type Bound struct {
	size

	read func(size) bool // nil unless it counts as discovery
	turn func() (until time.Time, end func(), err error)
}

// Of returns the limit for a path. Discovery responses share one limit.
func (b *Bounds) Of(path string) (Bound, error) {
	bound, err := b.of(path)
	bound.turn = b.Turn
	return bound, err
}

func (b *Bounds) of(path string) (Bound, error) {
	part := strings.Split(strings.Trim(strings.TrimPrefix(path, b.Base), "/"), "/")
	switch {
	case (part[0] == "api" || part[0] == "apis") && len(part) <= 3:
		left, err := b.known.left(path)
		if part[0] == "api" && len(part) == 2 || len(part) == 3 {
			left.values = min(left.values, maxOfVersion)
		}
		return Bound{size: left, read: func(had size) bool { return b.known.take(path, had) }}, err
	case len(part) > 4 && len(part) < 7 && part[0] == "api" && (part[4] == "pods" || part[4] == "secrets"),
		len(part) > 5 && part[1] == "batch" && part[5] == "jobs":
		return Bound{size: size{mostBytes, mostTyped}}, nil
	}
	return Bound{size: size{mostBytes, mostValues}}, nil
}

// Hold limits the body of a response; end is called when it is closed.
func (b Bound) Hold(res *http.Response, end func()) error {
	if err := asAsked(res); err != nil {
		return errors.Join(err, res.Body.Close())
	}
	if res.StatusCode >= http.StatusBadRequest {
		b.bytes = min(b.bytes, maxOfError)
	}
	res.Body = &bounded{ReadCloser: res.Body, most: b, end: end}
	return nil
}

type known struct {
	mu  sync.Mutex
	has map[string]size // by path; the last response counts
}

func (k *known) left(path string) (size, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, again := k.has[path]; !again && len(k.has) >= mostParts {
		return size{}, errTooMuch
	}
	l := size{mostOfKnown, mostKnown}
	for at, had := range k.has {
		if at != path {
			l.bytes, l.values = l.bytes-had.bytes, l.values-had.values
		}
	}
	if k.has == nil {
		k.has = map[string]size{}
	}
	k.has[path] = size{} // counts as a part
	return size{min(l.bytes, mostBytes), l.values}, nil
}

// take reports whether all responses fit: others may have been read concurrently.
func (k *known) take(path string, had size) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.has[path] = had
	var sum size
	for _, h := range k.has {
		sum.bytes, sum.values = sum.bytes+h.bytes, sum.values+h.values
	}
	return sum.bytes <= mostOfKnown && sum.values <= mostKnown
}

// asAsked rejects formats other than JSON, which client-go would decode.
func asAsked(res *http.Response) error {
	form, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	for _, other := range []string{"protobuf", "yaml", "cbor"} {
		if strings.Contains(form, other) {
			return fmt.Errorf("the target answers in %s, and was asked for JSON", form)
		}
	}
	return nil
}

type bounded struct {
	io.ReadCloser

	most  Bound
	had   size
	words bool // inside a string
	after bool // after a backslash in a string
	end   func()
	// endTurn is nil without a turn.
	endTurn func()
	until   time.Time
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.had.bytes >= b.most.bytes {
		return 0, errTooMuch
	}
	if b.most.turn != nil && b.endTurn == nil && (b.had.bytes > maxSmallBytes || b.had.values > maxSmallValues) {
		var err error
		if b.until, b.endTurn, err = b.most.turn(); err != nil {
			return 0, err
		}
	}
	if b.endTurn != nil && time.Now().After(b.until) {
		return 0, errTooSlow
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.most.bytes-b.had.bytes)])
	b.count(p[:n])
	if b.had.values > b.most.values || b.most.read != nil && !b.most.read(b.had) {
		return 0, errTooMuch
	}
	return n, err
}

func (b *bounded) count(text []byte) {
	b.had.bytes += len(text)
	for _, c := range text {
		switch {
		case b.after:
			b.after = false
		case c == '"':
			b.words = !b.words
		case b.words:
			b.after = c == '\\'
		case c == ',', c == '[', c == '{':
			b.had.values++
		}
	}
}

func (b *bounded) Close() error {
	defer b.end()
	if b.endTurn != nil {
		defer b.endTurn()
	}
	return b.ReadCloser.Close()
}
