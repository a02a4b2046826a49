// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// Apart are the pools of load balancers that were decoded apart from them, by the place of each in
// its list. A load balancer that is no list's is the first.
type Apart [][]*armnetwork.BackendAddressPool

// SplitPools decodes the pools of a load balancer, or of a list of them, and returns the text without
// them. Where the text is not as it has to be it is returned as it is: whoever decodes it says why.
func SplitPools(text []byte) (rest []byte, pools Apart) {
	w := walker{text: text}
	end, ok := w.root(skipSpace(text, 0))
	if !ok || skipSpace(text, end) != len(text) {
		return text, nil
	}
	from := 0
	for _, c := range w.cuts {
		all, err := unmarshalPools(text[c.from:c.to])
		if err != nil {
			return text, nil
		}
		for len(pools) <= c.of {
			pools = append(pools, nil)
		}
		pools[c.of] = all
		rest = append(append(rest, text[from:c.from]...), "[]"...)
		from = c.to
	}
	return append(rest, text[from:]...), pools
}

// Rejoin gives load balancers their pools back.
func (a Apart) Rejoin(all ...*armnetwork.LoadBalancer) {
	for i, b := range all {
		if i < len(a) && a[i] != nil && b != nil && b.Properties != nil {
			b.Properties.BackendAddressPools = a[i]
		}
	}
}

// cut is where the pools of a load balancer are.
type cut struct{ of, from, to int }

// walker finds them. It is no parser: what it passes over is checked by whoever decodes it. Its methods
// are given where a value begins, and return where it ends; false if it does not.
type walker struct {
	text []byte
	cuts []cut
}

// root walks a load balancer, or a list.
func (w *walker) root(at int) (int, bool) {
	return w.members(at, func(key string, at int) (int, bool) {
		switch key {
		case `"value"`:
			return w.list(at)
		case `"properties"`:
			return w.properties(0, at)
		}
		return skip(w.text, at)
	})
}

func (w *walker) list(at int) (int, bool) {
	if at >= len(w.text) || w.text[at] != '[' {
		return skip(w.text, at)
	}
	var ok bool
	for of := 0; ; of++ {
		if at = skipSpace(w.text, at+1); at < len(w.text) && w.text[at] == ']' {
			return at + 1, true
		}
		at, ok = w.members(at, func(key string, at int) (int, bool) {
			if key == `"properties"` {
				return w.properties(of, at)
			}
			return skip(w.text, at)
		})
		if at = skipSpace(w.text, at); !ok || at >= len(w.text) {
			return at, false
		}
		if w.text[at] == ']' {
			return at + 1, true
		}
	}
}

func (w *walker) properties(of, at int) (int, bool) {
	return w.members(at, func(key string, from int) (int, bool) {
		to, ok := skip(w.text, from)
		if ok && key == `"backendAddressPools"` && w.text[from] == '[' {
			w.cuts = append(w.cuts, cut{of, from, to})
		}
		return to, ok
	})
}

// members calls value for each member of an object, which returns where its value ends. What is no
// object is passed over.
func (w *walker) members(at int, value func(key string, at int) (int, bool)) (int, bool) {
	if at >= len(w.text) || w.text[at] != '{' {
		return skip(w.text, at)
	}
	for {
		if at = skipSpace(w.text, at+1); at < len(w.text) && w.text[at] == '}' {
			return at + 1, true
		}
		end, ok := skip(w.text, at)
		colon := skipSpace(w.text, end)
		if !ok || colon >= len(w.text) || w.text[colon] != ':' {
			return at, false
		}
		at, ok = value(string(w.text[at:end]), skipSpace(w.text, colon+1))
		if at = skipSpace(w.text, at); !ok || at >= len(w.text) {
			return at, false
		}
		if w.text[at] == '}' {
			return at + 1, true
		}
		if w.text[at] != ',' {
			return at, false
		}
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// skip returns where the value ends that begins at a place.
func skip(text []byte, at int) (end int, ok bool) {
	depth := 0
	for ; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			if at >= len(text) {
				return at, false
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth == 0 { // a number, or a word
				n := bytes.IndexAny(text[at:], ",]} \n\r\t")
				return at + n, n > 0
			}
			continue
		}
		if depth <= 0 {
			return at + 1, depth == 0
		}
	}
	return at, false
}
