// SPDX-License-Identifier: Apache-2.0

package humanize

// Style is a color or a weight of text on a terminal.
type Style string

// Styles of what is well, what needs time, what is wrong, and of titles.
const (
	Good  Style = "\x1b[32m"
	Warn  Style = "\x1b[33m"
	Bad   Style = "\x1b[31m"
	Title Style = "\x1b[1m"

	resetStyle = "\x1b[0m"
)

// PaintText styles text if isColored.
func PaintText(isColored bool, s Style, text string) string {
	if !isColored || s == "" {
		return text
	}
	return string(s) + text + resetStyle
}
