// SPDX-License-Identifier: Apache-2.0

package words

import (
	"regexp"
	"strings"

	"weir.dev/weir/internal/fault"
)

// Requested adds to a text of an error, in at most limit bytes, what Azure calls the request that
// failed, where it named one. The id survives the cut: it is what Azure's support asks for.
func Requested(text string, err error, limit int) string {
	id := request(err)
	if id == "" {
		return text
	}
	return strings.TrimRight(Sentence(text, limit-len(id)), ". ") + id
}

// request is what a text of an error ends with that has a request of Azure behind it.
func request(err error) string {
	if id, _ := fault.RequestOf(err); id != "" && !strings.Contains(err.Error(), id) {
		return " (request id " + id + ")"
	}
	return ""
}

// named finds what texts of errors name of one attempt alone: the id that Weir adds, ids of
// requests and operations in Azure's own words, and the time at which Azure wrote them. Other ids are those of subscriptions
// and identities: with another one of these it is another error. An id may be cut at the end of a text.
var named = []*regexp.Regexp{
	regexp.MustCompile(` ?\(request id [0-9A-Za-z_.-]+(?:\)|…)`),
	regexp.MustCompile(`(?i)((?:request|correlation|tracking|trace|activity|operation)[a-z_-]*(?:\s+with)?[\s_-]{0,3}(?:ids?|identifier)?[\s:=/"'(\[\\]{0,6}(?:is[\s:"']{1,3})?)(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f-]{1,36}…)`),
	regexp.MustCompile(`(?i)(timestamp[\s:=/"'(\[\\]{0,6})[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,18}Z?`),
}

// changing find what differs in the texts of each try besides: when another one follows, and how long Azure asks to wait.
var changing = []*regexp.Regexp{
	regexp.MustCompile(`(follows|tries again) at [0-9-]{10}T[0-9:.]{8,18}Z`),
	regexp.MustCompile(`(?i)((?:retry|try again|wait)[^.0-9]{0,20})[0-9]{1,6}(\W{0,2}s(?:econds?)?\b)`),
}

// OfAnyTry returns a text without what differs in the texts of each try. Events have that: the same again is counted.
func OfAnyTry(text string) string {
	text = unnamed(text)
	for _, of := range changing {
		text = of.ReplaceAllString(text, "$1$2")
	}
	return text
}

// Same reports whether two texts say the same, but for ids of requests: each try that fails has
// others, which is no news by itself.
func Same(a, b string) bool { return a == b || unnamed(a) == unnamed(b) }

// unnamed is a text without what it names of one attempt alone.
func unnamed(text string) string {
	for _, of := range named {
		text = of.ReplaceAllString(text, "$1")
	}
	return text
}
