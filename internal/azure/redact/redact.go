// SPDX-License-Identifier: Apache-2.0

// Package redact removes credentials from text and requests.
package redact

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Mark replaces a secret.
const Mark = "REDACTED"

var secretHeaders = []string{"Authorization", "X-Ms-Authorization-Auxiliary"}

// Request returns a printable copy of req without a body. req is not modified.
func Request(req *http.Request) *http.Request {
	safe := req.Clone(req.Context())
	safe.Body, safe.GetBody = nil, nil
	safe.URL.RawQuery = versionOnly(safe.URL)
	safe.URL.User = nil
	for _, name := range secretHeaders {
		if safe.Header.Get(name) != "" {
			safe.Header.Set(name, Mark)
		}
	}
	return safe
}

var (
	tokenPattern = regexp.MustCompile(`(?i)\b(bearer|sharedaccesssignature|basic)((?:[\s:"'\\]|%20)+)[A-Za-z0-9\-._~+/=]{4,}`)
	jwtPattern   = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	// On a parse error, the SDK quotes the token endpoint's whole response.
	fieldPattern = regexp.MustCompile(`(?i)((?:access_?token|refresh_?token|id_?token|client_?secret|client_?assertion|assertion|password|shared_?access_?key|[?&]sig)\\*["']?\s*[:=]\s*\[?\\*["']?)[^"'&\s,}\]\\]+`)
	urlPattern   = regexp.MustCompile(`(?i)https?:(?://|\\/\\/)[^\s"'<>]+`)
)

// Text redacts tokens, and the queries of URLs, because Azure signs operation URLs.
func Text(text string) string {
	text = urlPattern.ReplaceAllStringFunc(text, redactURL)
	text = tokenPattern.ReplaceAllString(text, "${1}${2}"+Mark)
	text = fieldPattern.ReplaceAllString(text, "${1}"+Mark)
	return jwtPattern.ReplaceAllString(text, Mark)
}

func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		before, _, _ := strings.Cut(text, "?")
		if strings.Contains(before, "@") {
			return Mark
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
