// SPDX-License-Identifier: Apache-2.0

// Package weight says what a JSON text takes to decode, before it is decoded.
package weight

import "fmt"

const (
	// MostBytes bounds an answer, decoded, and all pages of a list together. The largest load
	// balancer that Azure allows is some ten MiB, a list of 10,000 public IPs fifteen.
	MostBytes = 64 << 20
	// mostWeight bounds the values in it: an object or an array weighs as much as four
	// others, because three bytes of text become a structure of some hundred.
	mostWeight = 2_000_000
	// mostDepth bounds how deep they are nested; Azure's answers are less than twenty deep.
	mostDepth = 64
	// mostCopied bounds what decoding holds at once: the SDK copies the text of each object
	// for each object around it. A list takes two copies.
	mostCopied = 3 * MostBytes
)

// Load is what a JSON text takes to decode.
type Load struct {
	// Weight grows with the number of values; those of texts that are kept together add up.
	Weight int

	depth, copied int
}

// Of walks a text once, before anything is made of it. It is no parser: of what is not
// JSON it says something, too.
func Of(text []byte) Load {
	type container struct{ from, inner int }
	var open []container
	var l Load
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ',', ':':
			l.Weight++
		case '{', '[':
			l.Weight += 4
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

// Bearable returns why an answer is not decoded, as an *Unbearable; nil if it is.
func (l Load) Bearable() error {
	switch {
	case l.depth > mostDepth:
		return &Unbearable{fmt.Sprintf("the answer is nested more than %d deep", mostDepth)}
	case l.Weight > mostWeight:
		return &Unbearable{fmt.Sprintf("the answer holds more than %d values", mostWeight/4)}
	case l.copied > mostCopied:
		return &Unbearable{fmt.Sprintf("the answer takes more than %d MiB to decode", mostCopied>>20)}
	}
	return nil
}

// Unbearable says why an answer is not read, or not asked for. Nobody asks again at once.
type Unbearable struct{ Why string }

// Error implements error.
func (e *Unbearable) Error() string { return e.Why + ": it is not taken for Azure's" }

// NonRetriable tells the SDK's retry policy to stop.
func (*Unbearable) NonRetriable() {}
