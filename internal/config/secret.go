// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a string that no formatter, encoder or logger prints.
type Secret string

const redacted = "REDACTED"

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	if s != "" {
		_, _ = io.WriteString(f, redacted)
	}
}

// MarshalText serves JSON, YAML and every other encoder.
func (s Secret) MarshalText() ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	return []byte(redacted), nil
}

// UnmarshalText takes the secret as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

// LogValue serves slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }
