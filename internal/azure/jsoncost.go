// SPDX-License-Identifier: Apache-2.0

package azure

import "fmt"

const (
	// maxResponseBytes limits a decompressed response, and all pages of a list. The largest load balancer
	// takes about 10 MiB, a list of 10,000 public IPs 15 MiB.
	maxResponseBytes = 64 << 20
	// maxWeight limits the number of values. Objects and arrays count four times: three bytes of
	// text become a structure of about a hundred.
	maxWeight = 2_000_000
	// maxDepth limits nesting; Azure's responses have fewer than 20 levels.
	maxDepth = 64
	// maxCopyBytes limits peak memory: the SDK copies the text of each object once per enclosing
	// object. A list takes two copies.
	maxCopyBytes = 3 * maxResponseBytes
)

// jsonCost is the decoding cost of a JSON text.
type jsonCost struct {
	// Weight grows with the number of values and is additive over texts.
	Weight int

	depth, copyBytes int
}

// measureJSON scans text once. It does not validate JSON.
func measureJSON(text []byte) jsonCost {
	type container struct{ from, inner int }
	var open []container
	var l jsonCost
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
			if l.depth = max(l.depth, len(open)); l.depth > maxDepth {
				return l
			}
		case '}', ']':
			if len(open) == 0 {
				continue
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			copied := i + 1 - last.from + last.inner
			l.copyBytes = max(l.copyBytes, copied)
			if len(open) > 0 {
				around := &open[len(open)-1]
				around.inner = max(around.inner, copied)
			}
		}
	}
	return l
}

// CheckLimits returns an [LimitError] if the limits are exceeded.
func (j jsonCost) CheckLimits() error {
	switch {
	case j.depth > maxDepth:
		return &LimitError{fmt.Sprintf("the response is nested more than %d levels deep", maxDepth)}
	case j.Weight > maxWeight:
		return &LimitError{fmt.Sprintf("the response has more than %d values", maxWeight/4)}
	case j.copyBytes > maxCopyBytes:
		return &LimitError{fmt.Sprintf("the response needs more than %d MiB to decode", maxCopyBytes>>20)}
	}
	return nil
}

// LimitError is the reason for not reading a response or not requesting a page. It is not retried.
type LimitError struct{ Reason string }

// Error implements error.
func (e *LimitError) Error() string { return e.Reason + ": it is not taken for Azure's" }

// NonRetriable stops the SDK's retries.
func (*LimitError) NonRetriable() {}
