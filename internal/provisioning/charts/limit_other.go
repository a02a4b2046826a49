// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package charts

import "errors"

// limit fails: the limits exist on Linux only.
func limit() error { return errors.New("charts are rendered on Linux alone") }
