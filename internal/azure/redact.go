// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

const redacted = "REDACTED"

// secretHeaders carry tokens.
var secretHeaders = []string{"Authorization", "X-Ms-Authorization-Auxiliary"}

// withoutSecrets returns a copy of the request that is safe to print. The body is
// left out, and the request that travels is not touched.
func withoutSecrets(req *http.Request) *http.Request {
	safe := req.Clone(req.Context())
	safe.Body, safe.GetBody = nil, nil
	// Of the query only the API version stays, all that a poller reads of it.
	safe.URL.RawQuery = versionOnly(safe.URL)
	safe.URL.User = nil
	for _, name := range secretHeaders {
		if safe.Header.Get(name) != "" {
			safe.Header.Set(name, redacted)
		}
	}
	return safe
}

var (
	tokenPattern = regexp.MustCompile(`(?i)\b(bearer|sharedaccesssignature|basic)((?:[\s:"'\\]|%20)+)[A-Za-z0-9\-._~+/=]{4,}`)
	jwtPattern   = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	// A token endpoint's answer that cannot be read is quoted whole by the library.
	fieldPattern = regexp.MustCompile(`(?i)((?:access_?token|refresh_?token|id_?token|client_?secret|client_?assertion|assertion|password|shared_?access_?key|[?&]sig)\\*["']?\s*[:=]\s*\[?\\*["']?)[^"'&\s,}\]\\]+`)
	urlPattern   = regexp.MustCompile(`(?i)https?:(?://|\\/\\/)[^\s"'<>]+`)
)

// without takes the token of the call's last request out of a text, however it is quoted.
func (c *call) without(text string) string {
	if token := c.token.Load(); token != nil && *token != "" {
		return strings.ReplaceAll(text, *token, redacted)
	}
	return text
}

// redact takes out of a text what would let its reader act as us: tokens, and the
// queries of URLs, since Azure signs the addresses of operations.
func redact(text string) string {
	text = urlPattern.ReplaceAllStringFunc(text, redactURL)
	text = tokenPattern.ReplaceAllString(text, "${1}${2}"+redacted)
	text = fieldPattern.ReplaceAllString(text, "${1}"+redacted)
	return jwtPattern.ReplaceAllString(text, redacted)
}

func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		before, _, _ := strings.Cut(text, "?")
		if strings.Contains(before, "@") {
			return redacted
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
