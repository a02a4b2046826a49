// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package charts

import "errors"

// limit refuses: what keeps a chart in its bounds is Linux'.
func limit() error { return errors.New("charts are rendered on Linux alone") }
