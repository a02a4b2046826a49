// SPDX-License-Identifier: Apache-2.0

// Package weight estimates the cost of decoding a JSON text.
package weight

import "fmt"

const (
	// MostBytes limits a decompressed response, and all pages of a list. The largest load balancer
	// takes about 10 MiB, a list of 10,000 public IPs 15 MiB.
	MostBytes = 64 << 20
	// mostWeight limits the number of values. Objects and arrays count four times: three bytes of
	// text become a structure of about a hundred.
	mostWeight = 2_000_000
	// mostDepth limits nesting; Azure's responses have fewer than 20 levels.
	mostDepth = 64
	// mostCopied limits peak memory: the SDK copies the text of each object once per enclosing
	// object. A list takes two copies.
	mostCopied = 3 * MostBytes
)

// Load is the decoding cost of a JSON text.
type Load struct {
	// Weight grows with the number of values and is additive over texts.
	Weight int

	depth, copied int
}

// Of scans text once. It does not validate JSON.
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

// Bearable returns an [Unbearable] if the limits are exceeded.
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

// Unbearable is the reason for not reading a response or not requesting a page. It is not retried.
type Unbearable struct{ Why string }

// Error implements error.
func (e *Unbearable) Error() string { return e.Why + ": it is not taken for Azure's" }

// NonRetriable stops the SDK's retries.
func (*Unbearable) NonRetriable() {}
