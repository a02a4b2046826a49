// SPDX-License-Identifier: Apache-2.0

// Package answers bounds what is read of the API servers of targets: one may be anybody's, and what it answers is
// read into the memory that load balancers are served from.
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
	// mostBytes and mostValues bound an answer.
	mostBytes, mostValues = 4 << 20, 200_000
	// mostTyped bounds the values of one that is read into a type of Kubernetes: two bytes of JSON become a Pod
	// of more than a thousand.
	mostTyped = 10_000
	// mostKnown and mostOfKnown bound all that a target says of its kinds, in values and in bytes; mostParts, in how many
	// answers. A cluster of a thousand definitions has half of them.
	mostKnown, mostOfKnown, mostParts = 100_000, 8 << 20, 1000
	// maxOfVersion bounds the values of the kinds of one group version, which are kept for an attempt.
	maxOfVersion = 10_000
	// maxOfError bounds the bytes of an answer that is an error: its text is kept until the attempt ends.
	maxOfError = 64 << 10
	// maxSmallBytes and maxSmallValues bound an answer that is read without a turn.
	maxSmallBytes, maxSmallValues = 128 << 10, 4000
)

var (
	errTooMuch = errors.New("the target answers more than is read of it")
	errTooSlow = errors.New("the target takes too long for a large answer")
)

// size is how much an answer has, or may have.
type size struct{ bytes, values int }

// Bounds are those of one target, for the time of an attempt.
type Bounds struct {
	// Base is what all paths of the server begin with.
	Base string
	// Turn waits for the turn to read an answer that is not small, of which there are few for all targets, and returns when it is
	// over and what ends it sooner. nil waits for nothing.
	Turn func() (until time.Time, end func(), err error)

	known known
}

// Bound is that of one answer.
type Bound struct {
	size

	read func(size) bool // nil for one that counts by itself
	turn func() (until time.Time, end func(), err error)
}

// Of returns the bound of what is answered for a path. What the target says of its kinds is asked for in many parts, and
// kept: all of them count.
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

// Hold has no more be read of an answer, and end be called once it is closed.
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

// known is how much a target has said of its kinds.
type known struct {
	mu  sync.Mutex
	has map[string]size // by path; the last answer counts
}

// left is how much may be said under a path.
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
	k.has[path] = size{} // it counts as a part
	return size{min(l.bytes, mostBytes), l.values}, nil
}

// take takes what was read under a path off what is left, and reports whether that was there: others may have
// been read meanwhile.
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

// asAsked refuses an answer in a form that nobody has asked for, and that client-go would read all the same.
func asAsked(res *http.Response) error {
	form, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	for _, other := range []string{"protobuf", "yaml", "cbor"} {
		if strings.Contains(form, other) {
			return fmt.Errorf("the target answers in %s, and was asked for JSON", form)
		}
	}
	return nil
}

// bounded is a body of which no more than so much is read.
type bounded struct {
	io.ReadCloser

	most  Bound
	had   size
	words bool // within a string
	after bool // after a backslash in one
	end   func()
	// endTurn ends the turn in which it is read, nil for none; until is when that is over.
	endTurn func()
	until   time.Time
}

// Read implements io.Reader.
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

// count counts what a text has, as if it was JSON.
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

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.end()
	if b.endTurn != nil {
		defer b.endTurn()
	}
	return b.ReadCloser.Close()
}
