// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// jsonWithSecrets and yamlWithSecrets are typical files; the second secret has an unknown key.
const (
	jsonWithSecrets = `{
  "cloud": "AzurePublicCloud", "tenantId": "t", "subscriptionId": "s",
  "aadClientId": "c", "aadClientSecret": "` + canary + `",
  "resourceGroup": "rg", "clientSecret": "` + canary + `", "vnetName": "v",
  "tagsMap": {"cost": "1"}, "useManagedIdentityExtension": false,
  "aadClientCertPassword": "` + canary + `"
}
`
	yamlWithSecrets = `subscriptionId: s
resourceGroup: rg
aadClientSecret: ` + canary + `
clientSecret: "` + canary + `"
vnetName: v
multipleStandardLoadBalancerConfigurations:
- name: kubernetes
  nodeSelector: {matchLabels: {zone: a}}
aadClientCertPassword: ` + canary + `
`
)

// told collects all output for a file: the result of Load, logs at every level, and formatted Configs.
func told(content []byte) string {
	c, ignored, err := parseConfig(content)
	var out bytes.Buffer
	for _, handler := range []slog.Handler{
		slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug - 8}),
		slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug - 8}),
	} {
		log := slog.New(handler)
		log.Debug(ignored.WarningText(), "ignored", ignored, "config", c, "auth", c.Auth, "err", err)
	}
	fmt.Fprintf(&out, "%v\n%+v\n%#v\n%v\n%+v\n%#v\n", c, c, c, ignored, ignored, err)
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&out, "%v\n", err)
	}
	return out.String()
}

// leaked returns the first eight characters of the canary found in a text.
func leaked(text string) string {
	for i := range len(canary) - 7 {
		if piece := canary[i : i+8]; strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

// A single typo in a valid file reveals no secret.
func TestAMistypedFileShowsNoSecret(t *testing.T) {
	typed := []string{"", `"`, "'", "{", "]", ": ", ",", "\n", "\n  ", "*", "\\"}
	for _, file := range []string{jsonWithSecrets, yamlWithSecrets} {
		if text := told([]byte(file)); leaked(text) != "" || !strings.Contains(text, `"clientSecret"`) && !strings.Contains(text, `clientSecret`) {
			t.Fatalf("of the file itself: %s", text)
		}
		for at := range len(file) {
			for _, name := range typed {
				for _, edited := range []string{file[:at] + name + file[at+1:], file[:at] + name + file[at:], file[:at] + name} {
					if piece := leaked(told([]byte(edited))); piece != "" {
						t.Fatalf("%q in line %d (%q) shows %s:\n%s\n%s", name, lineNumber([]byte(file), at), file[max(0, at-20):at], piece, edited, told([]byte(edited)))
					}
				}
			}
		}
	}
}

// FuzzLeak edits a file in two places.
func FuzzLeak(f *testing.F) {
	f.Add(true, 60, 1, `"`, 100, 0, "")
	f.Add(true, 0, 1, "", 150, 1, "'")
	f.Add(false, 40, 1, "\n  ", 60, 1, "?")
	f.Add(false, 31, 1, ": ", 50, 2, "")
	f.Fuzz(func(t *testing.T, asJSON bool, at, cut int, about string, at2, cut2 int, what2 string) {
		file := yamlWithSecrets
		if asJSON {
			file = jsonWithSecrets
		}
		if len(about)+len(what2) > 4 || max(cut, cut2) > 2 {
			t.Skip() // may write the canary itself, or move a whole value under another key
		}
		edited := edit(edit(file, at, cut, about), at2, cut2, what2)
		if piece := leaked(told([]byte(edited))); piece != "" {
			t.Fatalf("shows %s:\n%s\n%s", piece, edited, told([]byte(edited)))
		}
	})
}

// edit replaces cut bytes of a text.
func edit(text string, at, cut int, about string) string {
	at = min(max(at, 0), len(text))
	return text[:at] + about + text[min(at+max(cut, 0), len(text)):]
}
