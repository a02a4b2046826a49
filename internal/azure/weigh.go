// SPDX-License-Identifier: Apache-2.0

package azure

import "fmt"

const (
	// mostBytes bounds an answer, decoded, and all pages of a list together. The largest load
	// balancer that Azure allows is some ten MiB, a list of 10,000 public IPs fifteen.
	mostBytes = 64 << 20
	// mostErrorBytes bounds a refusal: of a longer one the status is all that is known.
	mostErrorBytes = 1 << 20
	// mostWeight bounds the values in it: an object or an array weighs as much as four
	// others, because three bytes of text become a structure of some hundred.
	mostWeight = 2_000_000
	// mostDepth bounds how deep they are nested; Azure's answers are less than twenty deep.
	mostDepth = 64
	// mostCopied bounds what decoding holds at once: the SDK copies the text of each object
	// for each object around it. A list takes two copies.
	mostCopied = 3 * mostBytes
)

// load is what a JSON text takes to decode.
type load struct{ weight, depth, copied int }

// weigh walks a text once, before anything is made of it. It is no parser: of what is not
// JSON it says something, too.
func weigh(text []byte) load {
	type container struct{ from, inner int }
	var open []container
	var l load
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ',', ':':
			l.weight++
		case '{', '[':
			l.weight += 4
			open = append(open, container{from: i})
			if l.depth = max(l.depth, len(open)); l.depth > mostDepth {
				return l
			}
		case '}', ']':
			if len(open) == 0 {
				continue
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			copied := i + 1 - last.from + last.inner
			l.copied = max(l.copied, copied)
			if len(open) > 0 {
				around := &open[len(open)-1]
				around.inner = max(around.inner, copied)
			}
		}
	}
	return l
}

// bearable returns why an answer is not decoded; nil if it is.
func (l load) bearable() error {
	switch {
	case l.depth > mostDepth:
		return &unbearable{fmt.Sprintf("the answer is nested more than %d deep", mostDepth)}
	case l.weight > mostWeight:
		return &unbearable{fmt.Sprintf("the answer holds more than %d values", mostWeight/4)}
	case l.copied > mostCopied:
		return &unbearable{fmt.Sprintf("the answer takes more than %d MiB to decode", mostCopied>>20)}
	}
	return nil
}

// unbearable says why an answer is not read, or not asked for. Nobody asks again at once.
type unbearable struct{ why string }

// Error implements error.
func (e *unbearable) Error() string { return e.why + ": it is not taken for Azure's" }

// NonRetriable tells the SDK's retry policy to stop.
func (*unbearable) NonRetriable() {}
