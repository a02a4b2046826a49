// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// redactionMark replaces a secret.
const redactionMark = "REDACTED"

var secretHeaders = []string{"Authorization", "X-Ms-Authorization-Auxiliary"}

// redactRequest returns a printable copy of req without a body. req is not modified.
func redactRequest(req *http.Request) *http.Request {
	safe := req.Clone(req.Context())
	safe.Body, safe.GetBody = nil, nil
	safe.URL.RawQuery = versionOnly(safe.URL)
	safe.URL.User = nil
	for _, name := range secretHeaders {
		if safe.Header.Get(name) != "" {
			safe.Header.Set(name, redactionMark)
		}
	}
	return safe
}

var (
	tokenPattern = regexp.MustCompile(`(?i)\b(bearer|sharedaccesssignature|basic)((?:[\s:"'\\]|%20)+)[A-Za-z0-9\-._~+/=]{4,}`)
	jwtPattern   = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	// On a parse error, the SDK quotes the token endpoint's whole response.
	fieldPattern = regexp.MustCompile(`(?i)((?:access_?token|refresh_?token|id_?token|client_?secret|client_?assertion|assertion|password|(?:shared_?access|account)_?key|(?:[?&;]|\b|%3f|%26)sig)\\*["']?\s*(?:[:=]|%3d)\s*\[?\\*["']?)[^"'&\s,}\]\\]+`)
	// The SDK quotes a polling URL that it does not accept, such as one without a host.
	pathPattern = regexp.MustCompile(`/[^\s"'<>?]*\?[^\s"'<>]+`)
	urlPattern  = regexp.MustCompile(`(?i)https?:(?://|\\/\\/)[^\s"'<>]+`)
)

// redactText redacts tokens, and the queries of URLs, because Azure signs operation URLs.
func redactText(text string) string {
	text = urlPattern.ReplaceAllStringFunc(text, redactURL)
	text = pathPattern.ReplaceAllStringFunc(text, redactURL)
	text = tokenPattern.ReplaceAllString(text, "${1}${2}"+redactionMark)
	text = fieldPattern.ReplaceAllString(text, "${1}"+redactionMark)
	return jwtPattern.ReplaceAllString(text, redactionMark)
}

func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		before, _, _ := strings.Cut(text, "?")
		if strings.Contains(before, "@") {
			return redactionMark
		}
		return before
	}
	u.User = nil
	u.RawQuery = versionOnly(u)
	return u.String()
}

func versionOnly(u *url.URL) string {
	if version := u.Query().Get("api-version"); version != "" {
		return url.Values{"api-version": {version}}.Encode()
	}
	return ""
}

// maxLineLength limits a line, in runes. An event note holds 1,024 characters, and the error is part of
// it.
const maxLineLength = 400

var dashPattern = regexp.MustCompile(`-{5,}`)

// redactLine makes text safe for events and logs: redacted, on one line, printable, at most [maxLineLength]
// runes.
func redactLine(text string) string {
	text = redactText(strings.Map(func(r rune) rune { // before Text: such characters could hide a secret
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text))
	// The SDK separates sections with rows of dashes.
	runes := []rune(strings.Join(strings.Fields(dashPattern.ReplaceAllString(text, " ")), " "))
	if len(runes) > maxLineLength {
		return string(runes[:maxLineLength-1]) + "…"
	}
	return string(runes)
}
