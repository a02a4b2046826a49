// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	// minSecretLength: shorter values match ordinary text.
	minSecretLength = 4
	// maxText bounds searched text. Longer text is withheld, so longer secrets need not be kept.
	maxText = 16 << 10
	// maxHidden bounds the search data of one log, in bytes: 32 MiB for 64 attempts.
	maxHidden, formCost = 512 << 10, 64
)

const (
	hidden       = "[hidden]"
	tooManyForms = "[hidden: there are too many secrets to search for]"
)

// secretFilter replaces secrets in text.
type secretFilter struct {
	// forms are sorted for binary search.
	forms []string
	// parent is the index of the longest other form that is a prefix, or -1.
	parent []int32
	size   int
	// hasSecrets is set even if all forms of a secret are too short.
	hasSecrets bool
	// hideAll is set once forms exceed maxHidden; all text is withheld then.
	hideAll bool
}

func (s secretFilter) addSecrets(secrets []string) secretFilter {
	if s.hideAll || len(secrets) == 0 {
		return s
	}
	size, forms := s.size, slices.Clip(s.forms)
	add := func(form string) bool {
		if form = strings.TrimSpace(form); len(form) < minSecretLength || len(form) > maxText {
			return true
		}
		size += len(form) + formCost
		forms = append(forms, strings.Clone(form)) // do not keep a large secret for one line
		return size <= maxHidden
	}
	for _, secret := range secrets {
		if !eachForm(secret, add) {
			return secretFilter{hideAll: true}
		}
	}
	slices.Sort(forms)
	forms = slices.Compact(forms)
	next := secretFilter{hasSecrets: true, forms: slices.Clip(forms), parent: make([]int32, len(forms))}
	for i, form := range forms {
		next.size += len(form) + formCost
		at := i - 1
		for at >= 0 && !strings.HasPrefix(form, forms[at]) {
			at = int(next.parent[at])
		}
		next.parent[i] = int32(at) //nolint:gosec // bounded by maxHidden
	}
	return next
}

// eachForm calls add with each form of a secret, and reports whether all calls returned true.
func eachForm(secret string, add func(string) bool) bool {
	if len(secret) <= maxText {
		for _, form := range secretForms(secret) {
			if !add(form) {
				return false
			}
		}
	}
	if strings.Contains(secret, "\n") { // a message may quote a single line
		for line := range strings.SplitSeq(secret, "\n") {
			if !add(line) {
				return false
			}
		}
	}
	return true
}

func secretForms(s string) []string {
	forms := []string{
		s, base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
		url.QueryEscape(s), url.PathEscape(s),
	}
	text, _ := json.Marshal(s)
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
	for _, text := range []string{strconv.Quote(s), strconv.QuoteToASCII(s), string(text), plain} {
		forms = append(forms, text[1:len(text)-1])
	}
	return forms
}

func (s secretFilter) cleanText(text string) string {
	switch {
	case s.hideAll:
		return tooManyForms
	case !s.hasSecrets:
		return text
	case len(text) > maxText:
		return fmt.Sprintf("[hidden: a text of %d KiB is too long to search for secrets]", len(text)>>10)
	}
	var out strings.Builder
	from := 0
	for at := 0; at+minSecretLength <= len(text); {
		n := s.matchLength(text[at:])
		if n == 0 {
			at++
			continue
		}
		out.WriteString(text[from:at])
		out.WriteString(hidden)
		at += n
		from = at
	}
	out.WriteString(text[from:])
	return out.String()
}

// matchLength returns the length of the longest form that is a prefix of text: the last one that sorts
// before text, or one of its parents.
func (s secretFilter) matchLength(text string) int {
	at := sort.Search(len(s.forms), func(i int) bool { return cmp.Compare(s.forms[i], text) > 0 }) - 1
	if at < 0 {
		return 0
	}
	common := 0
	for common < min(len(s.forms[at]), len(text)) && s.forms[at][common] == text[common] {
		common++
	}
	for at >= 0 && len(s.forms[at]) > common {
		at = int(s.parent[at])
	}
	if at < 0 {
		return 0
	}
	return len(s.forms[at])
}
